import { posix } from "node:path";
import { type Rule, rule } from "./findings.ts";

/** Stands in folded text for what is not known before the code runs. */
export const UNKNOWN = "\uFFFC";

/** What a path is, seen from a program that works in the workspace; temporary files count as inside. */
type Place = "inside" | "outside" | "persistence" | "device" | "secret";

export type PathUse = "read" | "write" | "delete";

/** Where credentials and other people's memory are. Matched anywhere in a text. */
const SECRET_PLACES: readonly RegExp[] = [
  /\/etc\/(?:g?shadow|sudoers|krb5\.keytab|ssl\/private)/,
  /\.ssh(?:\/|$)|\bid_(?:rsa|dsa|ecdsa|ed25519)\b|authorized_keys/,
  /\.(?:aws|azure|gnupg|kube|password-store)\/|\.config\/(?:gcloud|gh)\/|\.docker\/config\.json/,
  /(?:^|\/)\.(?:netrc|pgpass|git-credentials|npmrc|pypirc|vault-token)$/,
  /\/proc\/[^/\s]+\/(?:environ|mem|root|fd|cwd|maps)\b/,
  /\/dev\/(?:k?mem|port)\b|\/proc\/kcore/,
  /(?:docker|containerd|crio|podman)\.sock\b/,
  /\/run\/secrets\//,
];

/** Where machines of a cloud hand out credentials, also in the spellings that name lists miss. */
const METADATA_SERVICES: readonly RegExp[] = [
  /169\.254\.(?:169\.254|170\.2)|100\.100\.100\.200|\b2852039166\b/,
  /metadata\.google\.internal|fd00:ec2::254|0xa9fea9fe/i,
];

/** Whole files that a wildcard may mean. */
const SECRET_FILES = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/proc/self/environ", "/proc/1/environ"];

/** Files that are run later: by shells, by the system, by git, by Python. */
const PERSISTENCE: readonly RegExp[] = [
  /(?:^|\/)\.(?:bashrc|bash_profile|bash_login|bash_logout|profile|zshrc|zshenv|zprofile|xinitrc|xprofile)$/,
  /\/etc\/(?:cron|systemd|init\.d|rc\.|profile|bash\.bashrc|ld\.so)|\/var\/spool\/cron/,
  /\.config\/(?:autostart|systemd)\/|\.git\/hooks\/|(?:site|user)customize\.py$/,
];

const DEVICE = /^\/dev\/(?:sd|hd|vd|xvd|nvme|mmcblk|loop|dm-|mapper\/|disk\/|md)/;
const INSIDE =
  /^\/(?:(?:tmp|var\/tmp|dev\/shm|workspace)(?:\/|$)|dev\/(?:null|zero|u?random|stdin|stdout|stderr|tty|fd\/[0-2])$)/;

/** A text that names a place with secrets in it. In running text that is a mention; by itself it is an argument. */
export function secretIn(text: string): Rule | undefined {
  const level = /\s/.test(text.trim()) ? "MEDIUM" : "CRITICAL";
  if (METADATA_SERVICES.some((service) => service.test(text)))
    return rule(level, "secret-place", "names the metadata service of a cloud, which hands out credentials");
  return placeOf(text) === "secret" ? rule(level, "secret-place", "names a place that holds secrets") : undefined;
}

/** What it means to use this path so. */
export function pathRule(path: string, use: PathUse): Rule {
  const place = placeOf(path);
  if (place === "secret") return rule("CRITICAL", "secret-place", "uses a file that holds secrets");
  return PATH_RULES[use][place];
}

const READS_OUTSIDE = rule("MEDIUM", "read-outside", "reads a file outside of the workspace");
const DELETES_OUTSIDE = rule("HIGH", "delete-outside", "deletes outside of the workspace");

const PATH_RULES: Readonly<Record<PathUse, Readonly<Record<Exclude<Place, "secret">, Rule>>>> = {
  read: {
    inside: rule("LOW", "file-read", "reads files"),
    outside: READS_OUTSIDE,
    persistence: READS_OUTSIDE,
    device: rule("HIGH", "device", "reads a disk past its file system"),
  },
  write: {
    inside: rule("LOW", "file-write", "writes files"),
    outside: rule("HIGH", "write-outside", "writes outside of the workspace"),
    persistence: rule("HIGH", "persistence", "writes a file that is run later, by others"),
    device: rule("CRITICAL", "device", "writes to a disk past its file system"),
  },
  delete: {
    inside: rule("MEDIUM", "deletion", "deletes files"),
    outside: DELETES_OUTSIDE,
    persistence: DELETES_OUTSIDE,
    device: rule("CRITICAL", "device", "deletes a device"),
  },
};

/** One of the texts that a name may have, marked as uncertain: one that leads out of the workspace if there is any. */
export function worstPath(texts: readonly (string | undefined)[]): string | undefined {
  const known = texts.filter((text) => text !== undefined);
  const worst = known.find((text) => /^(?:\/|~|\.\.)/.test(text)) ?? known[0];
  return worst === undefined ? undefined : worst + UNKNOWN;
}

/** A directory whose loss is the loss of everything: "/", "~", "/home", "/*". */
export function isEverything(path: string): boolean {
  const plain = tidy(path)
    .replace(/[/*.]+$/, "")
    .replace(/^\/root$/, "~");
  if (plain === "") return /^[/*.]*\//.test(path);
  return /^(?:~|\/(?:bin|boot|dev|etc|home|lib|lib64|opt|proc|sbin|srv|sys|usr|var|home\/[^/]+))$/.test(plain);
}

function placeOf(path: string): Place {
  const plain = tidy(path);
  if (SECRET_PLACES.some((place) => place.test(plain)) || isSecretByWildcard(plain)) return "secret";
  if (DEVICE.test(plain)) return "device";
  if (PERSISTENCE.some((place) => place.test(plain))) return "persistence";
  return INSIDE.test(plain) || !/^(?:\/|~|\.\.(?:\/|$))/.test(plain) ? "inside" : "outside";
}

function tidy(path: string): string {
  const local = path
    .replace(/\uFFFC+$/, "")
    .replace(/^file:\/\/(?:localhost)?/, "")
    .replace(/^\$\{?HOME\}?(?=\/|$)/, "~");
  if (local.length > 4096 || !local.includes("/")) return local;
  return posix.normalize(local);
}

/** A few wildcards only: each more is more work. */
function isSecretByWildcard(path: string): boolean {
  const wildcards = path.match(/[*?[]/g)?.length ?? 0;
  if (wildcards === 0 || wildcards > 6 || path.length > 256 || /^[/*?]*$/.test(path)) return false;
  const plain = path.replace(/[.+^$(){}|\\]/g, "\\$&").replace(/\[[^\]]*\]?|\?/g, "[^/]");
  const pattern = new RegExp(`^${plain.replace(/\*+/g, "[^/]*")}$`);
  return SECRET_FILES.some((file) => pattern.test(file));
}

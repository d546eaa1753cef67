import { posix } from "node:path";
import type { Rule } from "./findings.ts";

/** Stands in folded text for what is not known before the code runs. */
export const UNKNOWN = "\uFFFC";

/** What a path is, seen from a program that works in the workspace. */
type Place = "workspace" | "nothing" | "temporary" | "outside" | "persistence" | "device" | "secret";

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
const NOTHING = /^\/dev\/(?:null|zero|u?random|stdin|stdout|stderr|tty|fd\/[0-2])$/;
const TEMPORARY = /^(?:\/tmp|\/var\/tmp|\/dev\/shm)(?:\/|$)/;
const WORKSPACE = /^\/workspace(?:\/|$)/;

/** A text that names a place with secrets in it. */
export function secretIn(text: string): Rule | undefined {
  if (METADATA_SERVICES.some((service) => service.test(text))) {
    return {
      pattern: "secret-place",
      level: isOneWord(text) ? "CRITICAL" : "MEDIUM",
      reason: "names the metadata service of a cloud, which hands out credentials",
    };
  }
  const path = tidy(text);
  if (!SECRET_PLACES.some((place) => place.test(path)) && !isSecretByWildcard(path)) return undefined;
  return {
    pattern: "secret-place",
    // In running text it is a mention; by itself it is an argument.
    level: isOneWord(text) ? "CRITICAL" : "MEDIUM",
    reason: "names a place that holds secrets",
  };
}

/** What it means to use this path so. */
export function pathRule(path: string, use: PathUse): Rule {
  const place = placeOf(path);
  if (place === "secret") {
    return { pattern: "secret-place", level: "CRITICAL", reason: "uses a file that holds secrets" };
  }
  return PATH_RULES[use][place];
}

const PATH_RULES: Readonly<Record<PathUse, Readonly<Record<Exclude<Place, "secret">, Rule>>>> = {
  read: {
    workspace: { pattern: "file-read", level: "LOW", reason: "reads files" },
    nothing: { pattern: "file-read", level: "LOW", reason: "reads files" },
    temporary: { pattern: "file-read", level: "LOW", reason: "reads files" },
    outside: { pattern: "read-outside", level: "MEDIUM", reason: "reads a file outside of the workspace" },
    persistence: { pattern: "read-outside", level: "MEDIUM", reason: "reads a file outside of the workspace" },
    device: { pattern: "device", level: "HIGH", reason: "reads a disk past its file system" },
  },
  write: {
    workspace: { pattern: "file-write", level: "LOW", reason: "writes files" },
    nothing: { pattern: "file-write", level: "LOW", reason: "writes files" },
    temporary: { pattern: "file-write", level: "LOW", reason: "writes files" },
    outside: { pattern: "write-outside", level: "HIGH", reason: "writes outside of the workspace" },
    persistence: { pattern: "persistence", level: "HIGH", reason: "writes a file that is run later, by others" },
    device: { pattern: "device", level: "CRITICAL", reason: "writes to a disk past its file system" },
  },
  delete: {
    workspace: { pattern: "deletion", level: "MEDIUM", reason: "deletes files" },
    nothing: { pattern: "deletion", level: "MEDIUM", reason: "deletes files" },
    temporary: { pattern: "deletion", level: "MEDIUM", reason: "deletes files" },
    outside: { pattern: "delete-outside", level: "HIGH", reason: "deletes outside of the workspace" },
    persistence: { pattern: "delete-outside", level: "HIGH", reason: "deletes outside of the workspace" },
    device: { pattern: "device", level: "CRITICAL", reason: "deletes a device" },
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
  if (NOTHING.test(plain)) return "nothing";
  if (DEVICE.test(plain)) return "device";
  if (PERSISTENCE.some((place) => place.test(plain))) return "persistence";
  if (TEMPORARY.test(plain)) return "temporary";
  if (WORKSPACE.test(plain)) return "workspace";
  return /^(?:\/|~|\.\.(?:\/|$))/.test(plain) ? "outside" : "workspace";
}

function tidy(path: string): string {
  const local = path
    .replace(/\uFFFC+$/, "")
    .replace(/^file:\/\/(?:localhost)?/, "")
    .replace(/^\$\{?HOME\}?(?=\/|$)/, "~");
  if (local.length > 4096 || !local.includes("/")) return local;
  return posix.normalize(local);
}

function isOneWord(text: string): boolean {
  return !/\s/.test(text.trim());
}

function isSecretByWildcard(path: string): boolean {
  if (!/[*?[]/.test(path) || path.length > 256 || !path.startsWith("/") || /^[/*?]*$/.test(path)) return false;
  return SECRET_FILES.some((file) => matchesWildcard(path.replace(/\[[^\]]*\]/g, "?"), file));
}

/** "*" within one segment and "?"; in time of the product of the lengths. */
function matchesWildcard(pattern: string, text: string): boolean {
  let at = 0;
  let star = -1;
  let resume = 0;
  let p = 0;
  while (at < text.length) {
    if (p < pattern.length && (pattern[p] === text[at] || (pattern[p] === "?" && text[at] !== "/"))) {
      p++;
      at++;
    } else if (pattern[p] === "*") {
      star = p++;
      resume = at;
    } else if (star !== -1 && text[resume] !== "/") {
      p = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[p] === "*") p++;
  return p === pattern.length;
}

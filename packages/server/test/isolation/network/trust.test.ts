import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { TrustFiles } from "../../../src/isolation/backend/backend.ts";
import { certificatesIn, SandboxAuthority } from "../../../src/isolation/network/certificates.ts";
import {
  findTrustStores,
  HostCertificates,
  type TrustPlan,
  treeBelow,
  trustFilesWith,
  trustPlan,
} from "../../../src/isolation/network/trust.ts";

const everything = () => true;
const theirs = [new SandboxAuthority(["a.test"]), new SandboxAuthority(["b.test"])];
const authority = new SandboxAuthority(["c.test"]);

let root: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "agentfense-trust-"));
});

afterEach(() => rm(root, { recursive: true, force: true }));

async function put(path: string, content = theirs.map(({ pem }) => pem).join("# next\n")): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), content);
}

async function link(path: string, target: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await symlink(target, join(root, path));
}

const OWN = ["/run/agentfense/ca.pem", "/run/agentfense/ca-bundle.pem", "/run/agentfense/cacerts"];

async function planned(trust: TrustFiles, shown = everything as (path: string) => boolean): Promise<TrustPlan> {
  return trustPlan(trust, await findTrustStores(treeBelow(root), shown));
}

/** Which of the three files stands at each path that is covered, beside the box's own. */
async function laid(trust: TrustFiles, shown: (path: string) => boolean = everything): Promise<Record<string, string>> {
  const { files } = await planned(trust, shown);
  expect(Object.keys(files)).toEqual(expect.arrayContaining(OWN));
  const names = new Map(Object.entries(trust).map(([name, content]) => [content, name]));
  return Object.fromEntries(
    Object.entries(files)
      .filter(([path]) => !OWN.includes(path))
      .map(([path, content]) => [path, names.get(content)!]),
  );
}

test("the bundle has the host's certificates and the authority's, whatever the host's ends with", async () => {
  for (const ending of ["", "\n", "# the end"]) {
    await put("/etc/ssl/certs/ca-certificates.crt", theirs.map(({ pem }) => pem).join("") + ending);
    const { bundle, authority: alone, java } = await new HostCertificates(root).with(authority);
    expect(certificatesIn(Buffer.from(bundle).toString())).toEqual(
      [...theirs, authority].map(({ certificate }) => certificate),
    );
    expect(Buffer.from(alone).toString()).toBe(authority.pem);
    expect(Buffer.from(java).includes(theirs[1]!.certificate)).toBe(true);
  }
});

test("a system that has certificates of its own keeps them, without the host's", async () => {
  await put("/etc/ssl/certs/ca-certificates.crt", theirs[0]!.pem);
  const trust = trustFilesWith(theirs[1]!.pem.trimEnd(), await new HostCertificates(root).with(authority));
  const own = [theirs[1]!, authority].map(({ certificate }) => certificate);
  expect(certificatesIn(Buffer.from(trust.bundle).toString())).toEqual(own);
  for (const one of own) expect(Buffer.from(trust.java).includes(one)).toBe(true);
  expect(Buffer.from(trust.java).includes(theirs[0]!.certificate)).toBe(false);
});

test("a host without certificates gives a bundle of one", async () => {
  await put("/etc/ssl/certs/ca-certificates.crt", "nothing in it");
  const { bundle } = await new HostCertificates(root).with(authority);
  expect(Buffer.from(bundle).toString()).toBe(authority.pem);
});

test("on Debian the file itself and Java's are covered", async () => {
  await put("/etc/ssl/certs/ca-certificates.crt");
  await put("/etc/ssl/certs/java/cacerts", "store");
  await link("/usr/lib/ssl/cert.pem", "/etc/ssl/certs/ca-certificates.crt");
  const trust = await new HostCertificates(root).with(authority);
  expect(await laid(trust)).toEqual({
    "/etc/ssl/certs/ca-certificates.crt": "bundle",
    "/etc/ssl/certs/java/cacerts": "java",
  });
});

test("on Fedora and SUSE the files that links lead to are covered, and no link is", async () => {
  await put("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem");
  await put("/etc/pki/ca-trust/extracted/java/cacerts", "store");
  await link("/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem");
  await link("/etc/pki/tls/cert.pem", "certs/ca-bundle.crt");
  await link("/etc/pki/java/cacerts", "../ca-trust/extracted/java/cacerts");
  await link("/etc/ssl", "pki/tls"); // a directory on the way may be one as well
  await put("/var/lib/ca-certificates/ca-bundle.pem");
  const trust = await new HostCertificates(root).with(authority);
  const expected = {
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem": "bundle",
    "/etc/pki/ca-trust/extracted/java/cacerts": "java",
  };
  expect(await laid(trust)).toEqual({ ...expected, "/var/lib/ca-certificates/ca-bundle.pem": "bundle" });
  expect(await laid(trust, (path) => path.startsWith("/etc/"))).toEqual(expected);
});

test("links that go round, out or nowhere, and directories, are left alone", async () => {
  await link("/etc/ssl/certs/ca-certificates.crt", "ca-certificates.crt");
  await link("/etc/ssl/cert.pem", "../../../../../../../../etc/hostname");
  await link("/etc/ssl/ca-bundle.pem", "missing");
  await mkdir(join(root, "/etc/pki/tls/certs/ca-bundle.crt"), { recursive: true });
  expect(await laid(await new HostCertificates(root).with(authority))).toEqual({});
});

test("variables name files of the box's own; Java's is there only where no store of a system is covered", async () => {
  const trust = await new HostCertificates(root).with(authority);
  const { env } = await planned(trust);
  expect(Object.keys(env).sort()).toEqual([
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "CURL_CA_BUNDLE",
    "DENO_CERT",
    "GIT_SSL_CAINFO",
    "JAVA_TOOL_OPTIONS",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
  ]);
  for (const value of Object.values(env)) expect(OWN.some((path) => value.endsWith(path))).toBe(true);
  await put("/etc/ssl/certs/java/cacerts", "store");
  expect((await planned(trust)).env).not.toHaveProperty("JAVA_TOOL_OPTIONS");
});

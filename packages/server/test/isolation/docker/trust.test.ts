import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { SandboxAuthority } from "../../../src/isolation/network/certificates.ts";
import { HostCertificates } from "../../../src/isolation/network/trust.ts";
import { type Arena, describeDocker, output } from "./arena.ts";

const authority = new SandboxAuthority(["own.test"]);
const ofImage = new SandboxAuthority(["image.test"]);

type Content = string | { readonly link: string };

/** The run's image with these files more, and these variables. */
async function imageWith({ engine }: Arena, files: Record<string, Content>, env: readonly string[]): Promise<string> {
  const staging = await mkdtemp(join(tmpdir(), "agentfense-image-"));
  onTestFinished(() => rm(staging, { recursive: true, force: true }));
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(staging, path)), { recursive: true });
    if (typeof content === "string") await writeFile(join(staging, path), content);
    else await symlink(content.link, join(staging, path));
  }
  const container = (await engine.docker("create", engine.image, "/bin/true")).trim();
  await engine.docker("cp", `${staging}/.`, `${container}:/`);
  const changes = env.flatMap((variable) => ["--change", `ENV ${variable}`]);
  const image = (await engine.docker("commit", ...changes, container)).trim();
  await engine.docker("rm", container);
  onTestFinished(async () => void (await engine.docker("rmi", "-f", image)));
  return image;
}

describeDocker("whom programs in a container believe", (arena) => {
  async function box(files: Record<string, Content>, env: readonly string[] = []) {
    const trust = await new HostCertificates().with(authority);
    const image = await imageWith(arena, files, env);
    const directory = await arena.directory();
    const backend = await arena.backend({ directory, image });
    const spec = await arena.spec({ trust, env: { PIP_CERT: "/the/user's" } });
    const made = await backend.createBox(spec);
    await mkdir(join(directory, spec.id));
    await made.start();
    const sh = async (line: string) => (await output(made, line)).stdout.trim().split("\n");
    return { made, sh, filesOnHost: () => readdir(join(directory, spec.id)), workspace: spec.mounts[0]!.source };
  }

  test("is the sandbox's authority beside those of the image, wherever the image keeps them", async () => {
    const { made, sh, filesOnHost } = await box(
      {
        "etc/ssl/certs/ca-certificates.crt": ofImage.pem,
        "etc/pki/tls": { link: "../ssl" },
        "etc/ssl/cert.pem": { link: "/etc/pki/tls/certs/ca-certificates.crt" },
        "opt/corp/tls.pem": ofImage.pem,
        "opt/java/lib/security/cacerts": "a store",
      },
      ["SSL_CERT_FILE=/opt/corp/tls.pem", "JAVA_HOME=/opt/java"],
    );
    const bundle = ofImage.pem + authority.pem;
    for (const path of ["/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem", "/opt/corp/tls.pem"]) {
      expect((await output(made, `cat ${path}`)).stdout, path).toBe(bundle);
    }
    expect(await sh("cat /run/agentfense/ca-bundle.pem $NODE_EXTRA_CA_CERTS")).toEqual(
      (bundle + authority.pem).trim().split("\n"),
    );
    // A store of Java's begins with these bytes.
    const magic = `python3 -c "print(open('/opt/java/lib/security/cacerts', 'rb').read(4).hex())"`;
    expect(await sh(`${magic}; printenv JAVA_TOOL_OPTIONS`)).toEqual(["feedfeed"]);
    expect(await sh('echo "$SSL_CERT_FILE $PIP_CERT"')).toEqual(["/run/agentfense/ca-bundle.pem /the/user's"]);
    expect(
      await sh("for f in /opt/corp/tls.pem $SSL_CERT_FILE; do (echo x > $f) 2>/dev/null || echo no; done"),
    ).toEqual(["no", "no"]);
    expect(await filesOnHost()).toEqual(["laid-0", "laid-1", "laid-2"]);
    await made.destroy();
    expect(await filesOnHost()).toEqual([]);
    expect(await arena.containers()).toEqual([]);
  });

  test("is nothing that an image's links lead out of it to, nor anything in the workspace", async () => {
    const { sh, workspace } = await box(
      {
        "workspace/store/ca-bundle.crt": ofImage.pem,
        "etc/pki/tls/certs": { link: "/workspace/store" },
        "etc/ssl/cert.pem": { link: "../../../../proc/self/environ" },
        "etc/ssl/ca-bundle.pem": { link: "ca-bundle.pem" },
        "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem/x": "a directory",
      },
      ["SSL_CERT_FILE=/tmp/../run/x.pem", "JAVA_HOME=../java"],
    );
    expect(await readdir(workspace)).toEqual([]);
    expect(await sh("awk '{ print $5 }' /proc/self/mountinfo | grep -E 'pem|crt|cacerts' | sort")).toEqual([
      "/run/agentfense/ca-bundle.pem",
      "/run/agentfense/ca.pem",
      "/run/agentfense/cacerts",
    ]);
  });
});

import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxAuthority } from "../../../src/isolation/network/certificates.ts";
import { HostCertificates } from "../../../src/isolation/network/trust.ts";
import { openBoxFixture } from "../bwrap/fixture.ts";

// What programs in a box think of a server with a certificate of the sandbox's authority, and of one with another's.

const SERVER = `
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "5"); self.end_headers(); self.wfile.write(b"hello")
    def log_message(self, *a): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
`;
const JAVA = `
import java.net.*; import java.net.http.*;
public class Get { public static void main(String[] a) throws Exception {
  System.out.print(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(a[0])).build(), HttpResponse.BodyHandlers.ofString()).body());
} }
`;
const CLIENTS: Record<string, string> = {
  curl: "curl -sS $URL",
  "curl without variables": "env -i curl -sS $URL",
  python: "/usr/bin/python3 -c \"import urllib.request as r; print(r.urlopen('$URL').read().decode(), end='')\"",
  "python without variables":
    "env -i /usr/bin/python3 -c \"import urllib.request as r; print(r.urlopen('$URL').read().decode(), end='')\"",
  node: "node -e \"fetch('$URL').then(r => r.text()).then(t => process.stdout.write(t))\"",
  git: "git ls-remote $URL/x 2>&1 | grep -c 'certificate' | tr 0 h",
  java: "java Get.java $URL",
};

const isRoot = process.getuid?.() === 0;
const authority = new SandboxAuthority(["localhost"]);
const stranger = new SandboxAuthority(["localhost"]);
const trust = await new HostCertificates().with(authority);
await using place = await openBoxFixture({ spec: { trust, env: { PIP_CERT: "/the/user's" } } });
const report: Record<string, Record<string, string>> = {};
await writeFile(join(place.directory, "server.py"), SERVER);
await writeFile(join(place.directory, "Get.java"), JAVA);
for (const [which, { key, certificate }] of Object.entries({
  own: authority.leafFor("localhost"),
  stranger: stranger.leafFor("localhost"),
})) {
  await writeFile(join(place.directory, `${which}.pem`), key + certificate);
  const server = await place.box.run({
    ...{ argv: ["/usr/bin/python3", "server.py", `${which}.pem`], env: {}, workdir: "/workspace", stdin: false },
  });
  const port = await new Promise<string>((resolve) =>
    server.stdout.once("data", (line) => resolve(String(line).trim())),
  );
  const env = { URL: `https://localhost:${port}` };
  for (const [name, line] of Object.entries(CLIENTS)) {
    const program = line.replace("env -i ", "").split(" ")[0]!;
    const path = program.startsWith("/") ? program : `/usr/bin/${program}`;
    if (!existsSync(path) || (program === "java" && !isRoot)) continue; // Java's start is slow, and once is enough
    const { stdout, exitCode } = await place.sh(line, { env });
    report[name] = { ...report[name], [which]: exitCode === 0 ? stdout : "refused" };
  }
  server.kill();
}
const { stdout: variables } = await place.sh('echo "$SSL_CERT_FILE $PIP_CERT $NODE_EXTRA_CA_CERTS"');
const { stdout: written } = await place.sh(
  "for f in /run/agentfense/ca.pem /etc/ssl/certs/ca-certificates.crt; do (echo x > $f; rm -f $f; mv $f /tmp/x) 2>/dev/null; tail -n 1 $f; done",
);
console.log(JSON.stringify({ clients: report, variables, written, log: place.log }));

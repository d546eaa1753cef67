import type { Rule } from "../findings.ts";
import type { PathUse } from "../places.ts";

const rule = (level: Rule["level"], pattern: string, reason: string): Rule => ({ level, pattern, reason });

const SUBPROCESS = rule("MEDIUM", "subprocess", "runs other programs");
const NETWORK = rule("MEDIUM", "network", "uses the network");
const ENVIRONMENT = rule("MEDIUM", "environment", "reads environment variables");
const DYNAMIC_CODE = rule("HIGH", "dynamic-code", "makes code from text");
const FILES = rule("LOW", "files", "works with files");
const DELETION = rule("MEDIUM", "deletion", "deletes files");
const PRIVILEGE = rule("HIGH", "privilege", "changes who it runs as, or who may use a file");
const INTERNALS = rule("CRITICAL", "escape", "reaches the internals of the interpreter");
const MODULES = rule("MEDIUM", "dynamic-import", "loads modules while running");
const PROCESS = rule("LOW", "process", "looks at its own process");
const INTERPRETER = rule("MEDIUM", "interpreter", "looks into the interpreter");
const LIBRARY = rule("LOW", "library", "uses a module that is not known to be harmless");
const GLOBAL = rule("LOW", "global-object", "uses the global object");
const PROTOTYPES = rule("MEDIUM", "prototypes", "reaches the prototypes that all objects share");

const each = (names: string, what: Rule): Record<string, Rule> =>
  Object.fromEntries(names.split(/\s+/).map((name) => [name, what]));

const FS_MODULES = ["fs:", "fs/promises:", "fs:.promises", "fs-extra:"];

/** Qualified name → what to say of it: "fs:" is the module fs, others are globals. The longest beginning counts. */
export const NAME_RULES: Readonly<Record<string, Rule>> = {
  ...each(
    "child_process: execa: shelljs: zx: cross-spawn: node-pty: Bun.spawn Bun.$ Deno.Command Deno.run",
    SUBPROCESS,
  ),
  ...each("cluster: worker_threads:", rule("MEDIUM", "concurrency", "starts threads or processes")),
  ...each("net: tls: http: https: http2: dgram: dns: quic: undici: axios: node-fetch: got: ws: superagent:", NETWORK),
  ...each("request: needle: ssh2: ftp: nodemailer: socket.io: express: fastify: koa: puppeteer: playwright:", NETWORK),
  ...each("pg: mysql: mysql2: mongodb: redis: ioredis: openai: @aws-sdk/client-s3: aws-sdk: playwright-core:", NETWORK),
  ...each("fetch XMLHttpRequest WebSocket EventSource WebTransport navigator.sendBeacon Bun.serve Deno.serve", NETWORK),
  ...each("Deno.connect Deno.listen Bun.connect", NETWORK),
  ...each("eval Function GeneratorFunction AsyncFunction ShadowRealm", DYNAMIC_CODE),
  ...each("vm: vm2: isolated-vm: repl: module:._compile WebAssembly", DYNAMIC_CODE),
  "WebAssembly.validate": LIBRARY,
  ...each("process.env dotenv: dotenv/config: Deno.env Bun.env", ENVIRONMENT),
  ...each("process.kill process.abort", rule("HIGH", "process-control", "sends signals to processes")),
  ...each(
    "process.setuid process.setgid process.seteuid process.setegid process.setgroups process.initgroups",
    PRIVILEGE,
  ),
  ...each("process.chdir process.umask", FILES),
  ...each("process.binding process._linkedBinding process.mainModule process._debugProcess", INTERNALS),
  "process.dlopen": rule("HIGH", "native-code", "loads native code"),
  ...each("ffi-napi: ffi: koffi: bindings: node-gyp:", rule("HIGH", "native-code", "calls native code")),
  ...each("process.getBuiltinModule module: require.cache require.extensions require.main require.resolve", MODULES),
  ...each("inspector: v8: async_hooks: trace_events: diagnostics_channel: process.report", INTERPRETER),
  process: PROCESS,
  ...each("module exports", rule("LOW", "module", "gives something to other modules")),
  ...each("module.require module.constructor module.parent module.children module._compile module._load", MODULES),
  ...each("process.stdin process.argv process.execArgv", rule("LOW", "input", "reads what it is given")),
  ...each("fs: fs/promises: fs-extra: graceful-fs: glob: fast-glob: globby: Deno Bun", FILES),
  ...each("url: events: stream: stream/promises: readline: readline/promises: zlib: crypto: string_decoder:", LIBRARY),
  ...each(
    "os: test: buffer: timers: timers/promises: perf_hooks: querystring: tty: punycode: constants: sqlite:",
    LIBRARY,
  ),
  "os:.homedir": rule("LOW", "system-information", "asks for the home directory"),
  ...each("rimraf: del: trash:", rule("HIGH", "recursive-deletion", "deletes directories with everything in them")),
  ...fsRules("unlink unlinkSync rm rmSync rmdir rmdirSync truncate truncateSync", DELETION),
  ...fsRules("chown chownSync lchown lchownSync fchown fchownSync", PRIVILEGE),
  ...each("globalThis global window self", GLOBAL),
  ...each("Reflect Proxy Object.getPrototypeOf Object.setPrototypeOf Object.getOwnPropertyDescriptor", PROTOTYPES),
  ...each("Object.getOwnPropertyDescriptors Object.getOwnPropertyNames Object.getOwnPropertySymbols", PROTOTYPES),
  ...each(
    "Object.defineProperty Object.defineProperties Object.prototype Array.prototype Function.prototype",
    PROTOTYPES,
  ),
  ...each(
    "String.prototype Number.prototype Promise.prototype Error.prepareStackTrace Error.captureStackTrace",
    PROTOTYPES,
  ),
  ...each("Buffer", LIBRARY),
  "import.meta": rule("LOW", "import-meta", "asks where it stands"),
  ...each("document localStorage sessionStorage indexedDB", rule("LOW", "browser", "uses what browsers have")),
};

/** Members that lead out of everything, on whatever object. */
export const ESCAPES: Readonly<Record<string, Rule>> = {
  mainModule: INTERNALS,
  _linkedBinding: INTERNALS,
  __defineGetter__: { ...PROTOTYPES, level: "HIGH" },
  __defineSetter__: { ...PROTOTYPES, level: "HIGH" },
  __lookupGetter__: { ...PROTOTYPES, level: "HIGH" },
  ["__proto__"]: { ...PROTOTYPES, level: "HIGH" },
  getPrototypeOf: PROTOTYPES,
  setPrototypeOf: PROTOTYPES,
  prepareStackTrace: PROTOTYPES,
  caller: PROTOTYPES,
  callee: PROTOTYPES,
  prototype: PROTOTYPES,
  constructor: rule("MEDIUM", "constructor", "takes the constructor of a value"),
};

/** Calls whose argument is JavaScript → which one: "last" as in new Function("a", "return a"). */
export const CODE_CALLS: Readonly<Record<string, "first" | "last">> = {
  eval: "first",
  Function: "last",
  GeneratorFunction: "last",
  AsyncFunction: "last",
  ...Object.fromEntries(
    "runInNewContext runInThisContext runInContext Script compileFunction SourceTextModule"
      .split(" ")
      .map((name) => [`vm:.${name}`, "first"]),
  ),
};

export const TIMERS: ReadonlySet<string> = new Set(["setTimeout", "setInterval", "setImmediate"]);

/** Calls that run a command line, or a program with a list of arguments. */
export const SHELL_CALLS: ReadonlySet<string> = new Set(
  `child_process:.exec child_process:.execSync child_process:.spawn child_process:.spawnSync child_process:.execFile
   child_process:.execFileSync execa:.execa execa:.execaCommand execa:.default shelljs:.exec cross-spawn:.default
   Bun.spawn Bun.spawnSync`.split(/\s+/),
);

/** Functions of fs → what their first argument is used for. Their "Sync" forms and those of promises are the same. */
const FS_PATHS: Readonly<Record<PathUse, string>> = {
  read: "readFile readdir open opendir stat lstat access readlink createReadStream exists realpath watch watchFile",
  write: "writeFile appendFile createWriteStream mkdir mkdtemp chmod utimes truncate",
  delete: "unlink rm rmdir",
};

/** The second argument of these is written. */
const FS_TARGETS = "rename copyFile cp link";

export const PATH_CALLS: Readonly<Record<string, { readonly argument: number; readonly use: PathUse }>> = {
  ...fsPaths("read", 0, FS_PATHS.read),
  ...fsPaths("write", 0, FS_PATHS.write),
  ...fsPaths("delete", 0, FS_PATHS.delete),
  ...fsPaths("write", 1, FS_TARGETS),
  // What a link leads to is reached through it.
  ...fsPaths("write", 0, "symlink"),
};

/** What makes readable text of unreadable text. */
export const DECODERS: ReadonlySet<string> = new Set(
  `atob unescape decodeURIComponent decodeURI String.fromCharCode String.fromCodePoint Buffer.from Uint8Array.fromBase64
   Uint8Array.fromHex TextDecoder zlib:.inflateSync zlib:.gunzipSync zlib:.unzipSync zlib:.inflateRawSync
   zlib:.brotliDecompressSync crypto:.createDecipheriv buffer:.Buffer.from`.split(/\s+/),
);

function fsRules(names: string, what: Rule): Record<string, Rule> {
  return Object.fromEntries(
    names.split(" ").flatMap((name) => FS_MODULES.map((module) => [`${module}.${name}`, what])),
  );
}

function fsPaths(use: PathUse, argument: number, names: string): Record<string, { argument: number; use: PathUse }> {
  const entries = names
    .split(" ")
    .flatMap((name) => [name, `${name}Sync`])
    .flatMap((name) => FS_MODULES.map((module) => [`${module}.${name}`, { argument, use }] as const));
  return Object.fromEntries(entries);
}

import { option } from "../option.ts";
import { CONFIGURATION, RUNTIMES } from "../shared-options.ts";

/** What the server takes is for its configuration to say. */
function asGiven(text: string): string {
  return text;
}

/** Settings that have options of their own, by the options' names. */
export const SETTINGS = {
  "grpc-addr": "server.grpc_addr",
  "http-addr": "server.http_addr",
  "metrics-addr": "server.metrics_addr",
  "codebase-path": "storage.codebase_path",
  "mount-path": "storage.mount_path",
  "db-path": "storage.db_path",
  database: "storage.database",
  runtime: "runtime.type",
  "log-level": "logging.level",
  "log-format": "logging.format",
} as const;

export const SETTING_OPTIONS = [
  ...CONFIGURATION,
  option({
    name: "grpc-addr",
    value: "ADDRESS",
    about: "where gRPC listens (default 127.0.0.1:9000); :9000 is every interface, unix:/path a socket",
  }),
  option({ name: "http-addr", value: "ADDRESS", about: 'where REST listens (default 127.0.0.1:8080); "" is no REST' }),
  option({ name: "metrics-addr", value: "ADDRESS", about: "a listener of its own for /metrics" }),
  option({ name: "codebase-path", value: "DIR", kind: "directory", about: "where codebases are kept" }),
  option({ name: "mount-path", value: "DIR", kind: "directory", about: "where the changes of sandboxes are kept" }),
  option({ name: "db-path", value: "FILE", kind: "file", about: "the database" }),
  option({
    name: "database",
    value: "URL",
    about:
      "a PostgreSQL database instead; others on this machine can read a password here: storage.database_password_file",
  }),
  option({
    name: "runtime",
    value: "NAME",
    words: RUNTIMES,
    about: "bwrap (default) or docker",
    parse: asGiven,
  }),
  option({
    name: "log-level",
    value: "LEVEL",
    words: ["debug", "info", "warn", "error", "fatal"],
    about: "debug, info (default), warn, error or fatal",
    parse: asGiven,
  }),
  option({
    name: "log-format",
    value: "FORMAT",
    words: ["text", "json"],
    about: "text (default) or json",
    parse: asGiven,
  }),
] as const;

/** The earlier server wrote its options with one dash. */
const OLD_OPTIONS = /^-(config|grpc-addr|http-addr|codebase-path|runtime)(=|$)/;

export function withTwoDashes(args: readonly string[]): string[] {
  return args.map((argument) => (OLD_OPTIONS.test(argument) ? `-${argument}` : argument));
}

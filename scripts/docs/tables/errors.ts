import { ERROR_DOMAIN, ERRORS, type ErrorCode, httpStatusOf, STATUS_NUMBERS } from "@agentfense/protocol";
import { ErrorInfoSchema } from "@agentfense/protocol/error-details";
import { SystemService } from "@agentfense/protocol/system";
import { SandboxClient, SandboxError } from "@agentfense/sdk";
import type { Engine } from "@agentfense/sdk/engine";
import { ConnectError, createRouterTransport } from "@connectrpc/connect";
import { code, table } from "./table.ts";

/** What each code means and what to do about it. */
const MEANINGS: Readonly<Record<ErrorCode, { readonly meaning: string; readonly todo: string }>> = {
  INVALID_ARGUMENT: {
    meaning: "the request cannot be right: a name, a number, a path, a rule of a wrong shape",
    todo: "correct it; the message says which field",
  },
  UNAUTHENTICATED: { meaning: "no API key, or not a valid one", todo: "send a key; a revoked one never comes back" },
  ROLE_FORBIDS: { meaning: "the key's role does not allow this method", todo: "use a key of another role" },
  CODEBASE_NOT_FOUND: {
    meaning: "no such codebase, or it belongs to somebody else",
    todo: "check the id and the key",
  },
  CODEBASE_IN_USE: { meaning: "sandboxes use it", todo: "destroy them first, or delete with `force`" },
  CODEBASE_IS_LOCAL: {
    meaning: "it is a directory of this machine: it has no versions, and uploads do not go there",
    todo: "work in the directory itself, or make a codebase on a server",
  },
  FILE_NOT_FOUND: {
    meaning: "no such path; in a sandbox's view also: the rules hide it",
    todo: "ask `ExplainPath` which rule decides",
  },
  VERSION_NOT_FOUND: { meaning: "the version never was, or is no longer kept", todo: "list the versions" },
  VERSION_CONFLICT: {
    meaning: "the codebase is not at the version the upload was built on",
    todo: "look at what changed, and build on the newest",
  },
  CONTENT_MISSING: {
    meaning: "a batch names content by its hash that the server does not have",
    todo: "ask `CompareManifest` and send what it names",
  },
  UPLOAD_MISMATCH: {
    meaning: "what arrived is not what was announced: its size or its hash differs",
    todo: "send it again; the file may have changed while it was read",
  },
  SANDBOX_NOT_FOUND: {
    meaning: "no such sandbox, or it belongs to somebody else",
    todo: "it may have expired: make one",
  },
  SANDBOX_ALREADY_RUNNING: { meaning: "it was started before", todo: "nothing: go on" },
  SANDBOX_NOT_RUNNING: { meaning: "it is not started, or stopped", todo: "start it" },
  SANDBOX_PAUSED: { meaning: "somebody paused it; what needs no process answers all the same", todo: "resume it" },
  SANDBOX_FAILED: { meaning: "it is in ERROR; the message says why", todo: "destroy it and make another" },
  SYNC_REFUSED: {
    meaning: "its changes cannot go to the codebase: its `sync` says never, or it is pinned to an old version",
    todo: "read the changes with `DiffChanges`, or make the sandbox otherwise",
  },
  SESSION_NOT_FOUND: { meaning: "no such session", todo: "make one" },
  SESSION_CLOSED: {
    meaning: "its shell ended, or another process took the channel to it; `close_reason` of the session says why",
    todo: "make another",
  },
  CONTEXT_NOT_FOUND: {
    meaning: "no such code context: it was removed, or the sandbox was stopped since",
    todo: "make another, or name none",
  },
  PORT_CLOSED: {
    meaning: "nothing in the sandbox accepts connections at this port",
    todo: "start a server there, on localhost or on all addresses, or wait for the port",
  },
  HOME_NOT_FOUND: { meaning: "no such home, or somebody else's", todo: "list the homes" },
  HOME_IN_USE: { meaning: "a sandbox runs with this home", todo: "stop that sandbox, or use another home" },
  SNAPSHOT_NOT_FOUND: { meaning: "no such snapshot, or somebody else's", todo: "list the snapshots" },
  SNAPSHOT_REFUSED: {
    meaning:
      "the sandbox cannot have a snapshot, or go back to one, as it is: it syncs by itself, or has processes that the call does not end",
    todo: "the message says what is in the way",
  },
  SECRET_NOT_FOUND: { meaning: "no such secret, or somebody else's", todo: "list the secrets, or put it" },
  SEALING_KEY_MISSING: {
    meaning: "the server has no key to seal secrets with, or not the one that this one was sealed with",
    todo: "the operator sets `secrets.key_file`; put the secret again",
  },
  PROCESS_NOT_FOUND: {
    meaning: "no such process: it never was, its end was forgotten, or the sandbox was stopped since",
    todo: "list the processes",
  },
  PROCESS_UNSUITABLE: {
    meaning: "the process has ended, or has not what the call needs: an input, a terminal, an output of its own",
    todo: "start it with what it lacks",
  },
  READER_TOO_SLOW: {
    meaning: "nothing was read from an attachment for a minute while the process waited for that",
    todo: "attach again: the process goes on, and its last output is kept",
  },
  KEY_NOT_FOUND: { meaning: "no such API key", todo: "list the keys" },
  COMMAND_TIMEOUT: {
    meaning: "the command's time was up; its whole process tree was killed. The output so far is in the details",
    todo: "ask for more time, up to the server's `runtime.max_timeout`",
  },
  WORKDIR_UNUSABLE: {
    meaning: "the working directory does not exist for the sandbox, or is none",
    todo: "name one that the rules show",
  },
  PROGRAM_NOT_FOUND: {
    meaning: "the program or shell does not exist in the sandbox",
    todo: "install it where sandboxes get their programs from, or name another",
  },
  RUNTIME_UNAVAILABLE: {
    meaning: "the runtime or network mode is not to be had on this server",
    todo: "`agentfense doctor` on the server says what is missing",
  },
  IMAGE_NOT_FOUND: {
    meaning: "the Docker engine does not have the image and may not or could not pull it",
    todo: "load it there, or set `runtime.docker.allow_pull`",
  },
  FILE_PERMISSION_DENIED: {
    meaning: "the rules, or the file's own mode, refuse the operation",
    todo: "ask `ExplainPath` which rule decides",
  },
  FILE_EXISTS: { meaning: "something is there already", todo: "name another place, or remove it first" },
  FILE_WRONG_KIND: {
    meaning: "not a directory, is a directory, not empty, leads out of the workspace",
    todo: "look at what is there",
  },
  LIMIT_EXCEEDED: {
    meaning: "a limit of the owner or of the server: sandboxes, sessions, bytes, files",
    todo: "remove something, or have the limit raised; the details name it",
  },
  RATE_LIMITED: { meaning: "too many calls of this owner", todo: "wait a moment, then try again" },
  RESOURCES_EXHAUSTED: {
    meaning: "the host itself is out of something: processes, descriptors, memory, disk",
    todo: "try again later; tell the operator",
  },
  DATABASE_UNAVAILABLE: {
    meaning: "the server cannot reach its database, or another server has taken it over",
    todo: "try again: the server goes on by itself when the database is back",
  },
  SHUTTING_DOWN: { meaning: "the server is going down", todo: "try again when it is back" },
  CANCELLED: { meaning: "the caller left, or the command was killed", todo: "nothing" },
  INTERNAL: {
    meaning: "a defect of ours or of the host; the message has a reference to the server's log",
    todo: "tell the operator the reference",
  },
};

/** The registry with everything a client can go by. */
export async function errorTable(): Promise<string> {
  const classes = await sdkClasses();
  const rows = (Object.keys(ERRORS) as ErrorCode[]).map((each) => {
    const { status, retryable } = ERRORS[each];
    const { meaning, todo } = MEANINGS[each];
    return [
      code(each),
      `${status} (${STATUS_NUMBERS[status]})`,
      String(httpStatusOf(STATUS_NUMBERS[status])),
      retryable ? "yes" : "",
      code(classes.get(each) ?? ""),
      meaning,
      todo,
    ];
  });
  return table(["code", "gRPC status", "HTTP", "retry", "SDK class", "meaning", "what to do"], rows);
}

/** What the SDK throws for each code: asked of the SDK itself, by a server that answers nothing else. */
async function sdkClasses(): Promise<ReadonlyMap<ErrorCode, string>> {
  const classes = new Map<ErrorCode, string>();
  for (const each of Object.keys(ERRORS) as ErrorCode[]) {
    await using client = new SandboxClient({ engine: failingEngine(each), retries: 0 });
    const thrown = await client.getServerInfo().then(
      () => undefined,
      (error: unknown) => error,
    );
    if (!(thrown instanceof SandboxError) || thrown.code !== each) throw new Error(`the SDK does not know ${each}`);
    classes.set(each, thrown.name);
  }
  return classes;
}

function failingEngine(reason: ErrorCode): Engine {
  const transport = createRouterTransport((router) => {
    router.service(SystemService, {
      getServerInfo() {
        const detail = { desc: ErrorInfoSchema, value: { reason, domain: ERROR_DOMAIN } };
        throw new ConnectError("no", STATUS_NUMBERS[ERRORS[reason].status], undefined, [detail]);
      },
    });
  });
  return { name: "failing", transport, [Symbol.asyncDispose]: async () => {} };
}

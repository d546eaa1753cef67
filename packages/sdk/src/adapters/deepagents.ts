import { compileRules, LEVEL, namesIn, RuleError } from "@agentfense/permission";
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import type {
  DeleteResult,
  EditResult,
  ExecuteResponse,
  FileDownloadResponse,
  FileInfo,
  FileOperationError,
  FileUploadResponse,
  GlobResult,
  GrepResult,
  LsResult,
  ReadRawResult,
  ReadResult,
  SandboxBackendProtocolV2,
  WriteResult,
} from "deepagents";
import { SandboxError, type SandboxErrorCode } from "../errors.ts";
import type { CallOptions } from "../model/options.ts";
import type { FileStat } from "../sandbox/files.ts";
import { workspacePath } from "../sandbox/parts.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { Turns } from "../turns.ts";
import { grep } from "./grep.ts";
import { keepEnds } from "./tools/bounds.ts";
import { decodeText, replaceText, sandboxFiles, type ToolFiles, textForModel } from "./tools/files.ts";
import { ToolFailure } from "./tools/tool.ts";

export interface DeepAgentsBackendOptions {
  /** For each command; default 60 s. */
  readonly timeoutMs?: number | undefined;
  /** Characters kept of each command's output; default 30,000. */
  readonly maxOutput?: number | undefined;
}

/** What a backend needs of a sandbox. */
export type BackendSandbox = Pick<Sandbox, "id" | "run" | "files">;

/**
 * The file system and the `execute` of a deep agent, in a sandbox. Paths that it gives are those that commands see
 * ("/workspace/src/a.ts"); "/src/a.ts" is taken for the same.
 */
export function deepAgentsBackend(
  sandbox: BackendSandbox,
  options: DeepAgentsBackendOptions = {},
): SandboxBackendProtocolV2 {
  return new SandboxBackend(sandbox, options);
}

class SandboxBackend implements SandboxBackendProtocolV2 {
  readonly id: string;
  readonly #sandbox: BackendSandbox;
  readonly #files: ToolFiles;
  readonly #timeoutMs: number;
  readonly #maxOutput: number;
  readonly #turns = new Turns();

  constructor(sandbox: BackendSandbox, { timeoutMs = 60_000, maxOutput = 30_000 }: DeepAgentsBackendOptions) {
    this.id = sandbox.id;
    this.#sandbox = sandbox;
    this.#files = sandboxFiles(sandbox.files);
    this.#timeoutMs = timeoutMs;
    this.#maxOutput = maxOutput;
  }

  async execute(command: string): Promise<ExecuteResponse> {
    const result = await this.#sandbox.run(command, { ...currentCall(), timeoutMs: this.#timeoutMs });
    const output = result.stdout + result.stderr;
    const remark = result.timedOut ? `\n[ended after ${this.#timeoutMs} ms: its time was up]` : "";
    return {
      output: keepEnds(output, this.#maxOutput) + remark,
      exitCode: result.exitCode,
      truncated: result.truncated || output.length > this.#maxOutput,
    };
  }

  ls(path: string): Promise<LsResult> {
    return orError(async () => {
      const entries = await this.#sandbox.files.readdir(path, { ...currentCall(), withFileTypes: true });
      return { files: entries.map(fileInfoOf) };
    });
  }

  read(path: string, offset = 0, limit = 500): Promise<ReadResult> {
    return orError(async () => {
      const { content, mimeType } = contentOf(await this.#sandbox.files.readFile(path, currentCall()), path);
      if (typeof content !== "string") return { content, mimeType };
      const lines = content.split("\n");
      const totalLines = lines.at(-1) === "" ? lines.length - 1 : lines.length;
      if (offset > 0 && offset >= totalLines) throw new ToolFailure(`${path} has only ${totalLines} lines`);
      const next = Math.min(offset + limit, totalLines);
      const isRest = next === totalLines;
      return {
        content: lines.slice(offset, isRest ? undefined : next).join("\n"),
        mimeType,
        totalLines,
        startLine: offset + 1,
        endLine: next,
        ...(isRest ? {} : { nextOffset: next }),
      };
    });
  }

  readRaw(path: string): Promise<ReadRawResult> {
    return orError(async () => {
      const call = currentCall();
      const { modifiedAt } = await this.#sandbox.files.stat(path, call);
      const time = modifiedAt.toISOString();
      const content = contentOf(await this.#sandbox.files.readFile(path, call), path);
      return { data: { ...content, created_at: time, modified_at: time } };
    });
  }

  write(path: string, content: string): Promise<WriteResult> {
    return orError(async () => {
      await this.#turns.take(() => this.#files.write(path, content, currentCall()));
      return { path };
    });
  }

  edit(path: string, oldText: string, newText: string, all = false): Promise<EditResult> {
    return orError(async () => {
      const replacement = { oldText, newText, all };
      const occurrences = await this.#turns.take(() => replaceText(this.#files, path, replacement, currentCall()));
      return { path, occurrences };
    });
  }

  delete(path: string): Promise<DeleteResult> {
    return orError(async () => {
      await this.#sandbox.files.rm(path, { ...currentCall(), recursive: true });
      return { path };
    });
  }

  grep(pattern: string, path?: string | null, glob?: string | null, maxCount?: number | null): Promise<GrepResult> {
    return orError(async () => {
      const search = { pattern, path: path ?? "/", syntax: "plain text" } as const;
      const found = await grep(this.#sandbox, search, currentCall());
      // As in .gitignore: without a slash it is about names, at any depth.
      const isWanted = glob === undefined || glob === null ? () => true : globMatcher(glob);
      const matches = found.matches.filter((match) => isWanted(match.path));
      const kept = matches.slice(0, maxCount ?? undefined);
      return {
        matches: kept.map((match) => ({ ...match, path: `/workspace/${match.path}` })),
        truncated: found.remarks.length > 0 || kept.length < matches.length,
      };
    });
  }

  glob(pattern: string, path = "/"): Promise<GlobResult> {
    return orError(async () => {
      const entries = await this.#sandbox.files.readdir(path, {
        ...currentCall(),
        recursive: true,
        withFileTypes: true,
      });
      const depth = namesIn(workspacePath(path)).length;
      const matches = globMatcher(`/${namesIn(pattern).join("/")}`);
      const files = entries.filter((entry) => matches(namesIn(entry.path).slice(depth).join("/")));
      return { files: files.map(fileInfoOf) };
    });
  }

  async uploadFiles(files: [string, Uint8Array][]): Promise<FileUploadResponse[]> {
    const responses: FileUploadResponse[] = [];
    for (const [path, content] of files) {
      const write = () => this.#files.write(path, content, currentCall());
      responses.push({ path, error: await this.#turns.take(write).then(() => null, operationError) });
    }
    return responses;
  }

  async downloadFiles(paths: string[]): Promise<FileDownloadResponse[]> {
    const responses: FileDownloadResponse[] = [];
    for (const path of paths) {
      const read = this.#sandbox.files.readFile(path, currentCall());
      responses.push(
        await read.then(
          (content) => ({ path, content, error: null }),
          (error) => ({ path, content: null, error: operationError(error) }),
        ),
      );
    }
    return responses;
  }
}

/** The protocol hands no signal in; that of the graph that runs is in its asynchronous context. */
function currentCall(): CallOptions {
  return { signal: AsyncLocalStorageProviderSingleton.getRunnableConfig()?.signal };
}

/** What a model can act on is an error in the result; anything else is thrown. */
async function orError<Result extends object>(action: () => Promise<Result>): Promise<Result | { error: string }> {
  try {
    return await action();
  } catch (error) {
    return { error: textForModel(error) };
  }
}

const OPERATION_ERRORS: Readonly<Partial<Record<SandboxErrorCode, FileOperationError>>> = {
  FILE_NOT_FOUND: "file_not_found",
  FILE_PERMISSION_DENIED: "permission_denied",
  FILE_WRONG_KIND: "is_directory",
  INVALID_ARGUMENT: "invalid_path",
};

function operationError(error: unknown): FileOperationError {
  const known = error instanceof SandboxError ? OPERATION_ERRORS[error.code] : undefined;
  if (known === undefined) throw error;
  return known;
}

function fileInfoOf({ path, kind, size, modifiedAt }: FileStat): FileInfo {
  const isDirectory = kind === "directory";
  return {
    path: `/workspace${path}${isDirectory ? "/" : ""}`,
    is_dir: isDirectory,
    size,
    modified_at: modifiedAt.toISOString(),
  };
}

/** Matches by our own globs, which take no longer for a hostile pattern than for any other. */
function globMatcher(pattern: string): (path: string) => boolean {
  try {
    const policy = compileRules([{ pattern, permission: "read" }]);
    return (path) => policy.decide(`/${path}`).level === LEVEL.read;
  } catch (error) {
    if (!(error instanceof RuleError)) throw error;
    throw new ToolFailure(`the glob does not fit: ${error.reason}`);
  }
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  pdf: "application/pdf",
  mp3: "audio/mpeg",
  wav: "audio/wav",
  mp4: "video/mp4",
};

/** Text if it is text, whatever its name; else bytes, of a kind that the name tells. */
function contentOf(bytes: Uint8Array, path: string): { content: string | Uint8Array; mimeType: string } {
  if (!bytes.includes(0)) {
    try {
      return { content: decodeText(bytes, path), mimeType: "text/plain" };
    } catch (error) {
      if (!(error instanceof ToolFailure)) throw error;
    }
  }
  const ending = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
  return { content: bytes, mimeType: MEDIA_TYPES[ending] ?? "application/octet-stream" };
}

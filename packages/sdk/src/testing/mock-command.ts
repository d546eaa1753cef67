/** A command that a sandbox of the mock engine was asked to run. */
export interface MockCommand {
  /** The line for the shell; of a program with arguments, these joined by spaces. */
  readonly command: string;
  /** The program and its arguments, when it was run without a shell. */
  readonly argv?: readonly string[];
  /** The variables of its sandbox, and over them those of its session or those that were given with it. */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute: "/workspace" unless something else was asked for. */
  readonly workdir: string;
  /** The input that was given with the command; that of an interactive command is told by `readInput`. */
  readonly stdin: string;
  readonly sandboxId: string;
  readonly sessionId?: string;
  /** All input, when its end has come. */
  readInput(): Promise<string>;
}

/** What a command prints and does. Everything is optional: `{}` is a command that succeeds silently. */
export interface MockAnswer {
  readonly stdout?: string | undefined;
  readonly stderr?: string | undefined;
  /** Default 0, or 128 + n after signal n. */
  readonly exitCode?: number | undefined;
  /** "SIGKILL" …: the command was ended by it. */
  readonly signal?: string | undefined;
  /** It takes this long; a timeout or an abort ends it earlier, as it would end a process. */
  readonly delayMs?: number | undefined;
  /**
   * Files it leaves behind: content by path, or null for one that it deletes. Written with the rights of the sandbox:
   * what the rules refuse is said on stderr, and the exit code is then 1.
   */
  readonly files?: Readonly<Record<string, string | null>> | undefined;
}

/**
 * The files of the sandbox that runs a command, under its rules. A refusal is thrown, with its `errno` ("EACCES" …).
 */
export interface MockFiles {
  read(path: string): string;
  readBytes(path: string): Uint8Array;
  /** Makes the directories on the way. */
  write(path: string, content: string | Uint8Array): void;
  /** A directory with all that is in it. */
  remove(path: string): void;
  exists(path: string): boolean;
  /** Names in a directory. */
  list(path?: string): string[];
}

/** Which commands are meant: the whole text, a pattern in it, or whatever the function says. */
export type MockMatcher = string | RegExp | ((command: MockCommand) => boolean);

/** A text is what the command prints. */
export type MockResponse =
  | string
  | MockAnswer
  | ((command: MockCommand, files: MockFiles) => string | MockAnswer | Promise<string | MockAnswer>);

interface Registration {
  readonly matcher: MockMatcher;
  readonly response: MockResponse;
}

/** The answers that a test has prepared; the last one that matches counts. */
export class CommandScript {
  readonly #registrations: Registration[] = [];

  add(matcher: MockMatcher, response: MockResponse): void {
    this.#registrations.push({ matcher, response });
  }

  clear(): void {
    this.#registrations.length = 0;
  }

  responseTo(command: MockCommand): MockResponse | undefined {
    return [...this.#registrations].reverse().find(({ matcher }) => matches(matcher, command))?.response;
  }
}

function matches(matcher: MockMatcher, command: MockCommand): boolean {
  if (typeof matcher === "string") return matcher === command.command.trim();
  if (typeof matcher === "function") return matcher(command);
  // `search` minds no lastIndex, so that a global pattern matches the second time too.
  return command.command.search(matcher) >= 0;
}

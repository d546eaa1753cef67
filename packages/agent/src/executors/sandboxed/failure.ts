import {
  AuthenticationError,
  ConnectionError,
  InvalidConfigurationError,
  PermissionDeniedError,
  ResourceLimitExceededError,
  RuntimeUnavailableError,
  SandboxError,
  SandboxNotFoundError,
  SandboxNotRunningError,
} from "@agentfense/sdk";
import { ExecutorError } from "../../errors.ts";

const UNAVAILABLE = [
  AuthenticationError,
  ConnectionError,
  InvalidConfigurationError,
  PermissionDeniedError,
  ResourceLimitExceededError,
  RuntimeUnavailableError,
  SandboxNotFoundError,
  SandboxNotRunningError,
];

/** What went wrong with a sandbox, in the words of executors. */
export function executorFailure(error: unknown): unknown {
  if (!(error instanceof SandboxError)) return error;
  const code = UNAVAILABLE.some((kind) => error instanceof kind) ? "UNAVAILABLE" : "INTERNAL";
  return new ExecutorError(code, `the sandbox cannot be used: ${error.message}`, { cause: error, hint: error.hint });
}

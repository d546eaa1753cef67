import { askUntilExpiry, type Reply } from "./ask.ts";
import type { ConfirmationAnswer, ConfirmationRequest, ConfirmationService } from "./confirmation.ts";

/** `true`, alone or as `approved`, is a yes; everything else, an exception included, is a no. */
export type ConfirmationVerdict = boolean | { readonly approved: boolean; readonly comment?: string | undefined };

/** The signal aborts when the answer is of no more use: it is too late, or nobody waits for it. */
export type ConfirmationCallback = (
  request: ConfirmationRequest,
  options: { readonly signal: AbortSignal },
) => ConfirmationVerdict | Promise<ConfirmationVerdict>;

/** Asks a function of yours. */
export class CallbackConfirmationService implements ConfirmationService {
  readonly #callback: ConfirmationCallback;

  constructor(callback: ConfirmationCallback) {
    this.#callback = callback;
  }

  request(
    request: ConfirmationRequest,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<ConfirmationAnswer> {
    return askUntilExpiry(request, options, async (signal) => {
      try {
        return replyFor(await this.#callback(request, { signal }));
      } catch (error) {
        return { decision: "denied", comment: `asking failed: ${error instanceof Error ? error.message : error}` };
      }
    });
  }
}

/** A callback written without types may give anything. */
function replyFor(verdict: unknown): Reply {
  if (typeof verdict === "boolean") return { decision: verdict ? "approved" : "denied" };
  if (typeof verdict !== "object" || verdict === null || !("approved" in verdict)) {
    return { decision: "denied", comment: "the callback gave no answer" };
  }
  const comment = "comment" in verdict && typeof verdict.comment === "string" ? verdict.comment : undefined;
  return { decision: verdict.approved === true ? "approved" : "denied", ...(comment === undefined ? {} : { comment }) };
}

type RequestOptions = NonNullable<Parameters<ConfirmationService["request"]>[1]>;

/** Says yes to everything. For tests, and for where the sandbox alone is protection enough. */
export class AutoApproveConfirmationService implements ConfirmationService {
  request(request: ConfirmationRequest, options: RequestOptions = {}): Promise<ConfirmationAnswer> {
    return askUntilExpiry(request, options, always({ decision: "approved", reviewer: "auto-approve" }));
  }
}

/** Says no to everything. */
export class AutoDenyConfirmationService implements ConfirmationService {
  request(request: ConfirmationRequest, options: RequestOptions = {}): Promise<ConfirmationAnswer> {
    return askUntilExpiry(request, options, always({ decision: "denied", reviewer: "auto-deny" }));
  }
}

function always(reply: Reply): () => Promise<Reply> {
  return async () => reply;
}

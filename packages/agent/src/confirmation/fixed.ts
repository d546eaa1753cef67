import { askUntilExpiry, type Reply } from "./ask.ts";
import type { ConfirmationAnswer, ConfirmationRequest, ConfirmationService } from "./confirmation.ts";

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

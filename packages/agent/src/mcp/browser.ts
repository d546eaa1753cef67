import type { Sandbox } from "@agentfense/sdk";
import type { ConfirmationService } from "../confirmation/confirmation.ts";
import type { BrowserDriver } from "../tools/tool.ts";
import { SandboxWorkspace } from "../workspace/sandbox-workspace.ts";

/** A browser in a sandbox that is there, for the tools of a server on it. It starts with the first action. */
export async function sandboxBrowser(
  sandbox: Sandbox,
  options: {
    readonly confirmation?: ConfirmationService | undefined;
    /** Where the Chromium in the sandbox is; default: where Debian and others have it. */
    readonly executablePath?: string | undefined;
  } = {},
): Promise<BrowserDriver & AsyncDisposable> {
  // What drives browsers is large, and most servers have none.
  const [{ requirePlaywright }, { BrowserRouter }] = await Promise.all([
    import("../browser/open-browser.ts"),
    import("../browser/router.ts"),
  ]);
  requirePlaywright();
  return new BrowserRouter(sandbox.id, { ...options, sandbox, workspace: new SandboxWorkspace(sandbox) });
}

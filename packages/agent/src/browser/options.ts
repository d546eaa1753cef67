import type { FromLocalOptions, Sandbox } from "@agentfense/sdk";
import type { ConfirmationService } from "../confirmation/confirmation.ts";
import type { SandboxSource } from "../executors/sandboxed/sandbox-source.ts";
import type { SecurityMode } from "../types.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { BrowserEvent } from "./result.ts";
import type { UrlRules } from "./url/policy.ts";

export interface BrowserRouterOptions {
  /** Where downloads and screenshots go. With a directory, the sandbox's browser sees that one as /workspace. */
  readonly workspace: Workspace & { readonly directory?: string | undefined };
  /** What opens a sandbox for each browser that needs one; default: a server. */
  readonly sandboxes?: SandboxSource | undefined;
  /** For the sandboxes that are opened: rules, limits, runtime. */
  readonly sandboxOptions?: FromLocalOptions | undefined;
  /** One that is there, instead of those. It is left as it is. */
  readonly sandbox?: Sandbox | undefined;
  /** The network of the sandboxes that are opened; default none: files only. "private" is the internet without this machine. */
  readonly network?: "none" | "private" | undefined;
  /** A Chromium, here and in the sandbox; default: where Debian and others have it. */
  readonly executablePath?: string | undefined;
  readonly urls?: UrlRules | undefined;
  /** Who is asked; without, what needs to be asked is denied. */
  readonly confirmation?: ConfirmationService | undefined;
  /** How long somebody has to answer; default 2 minutes. */
  readonly confirmationTimeoutMs?: number | undefined;
  /** Default STRICT. */
  readonly securityMode?: SecurityMode | undefined;
  /** Default 1280 by 720. */
  readonly viewport?: { readonly width: number; readonly height: number } | undefined;
  /** For an action that does not say so itself; default 30 s. */
  readonly actionTimeoutMs?: number | undefined;
  /** For a browser to be ready; default 60 s. */
  readonly openTimeoutMs?: number | undefined;
  /** The largest file that is downloaded; default 16 MiB. */
  readonly maxDownloadBytes?: number | undefined;
  readonly onEvent?: ((event: BrowserEvent) => void) | undefined;
}

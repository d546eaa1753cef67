import type { Page, Response } from "playwright-core";

/** What the server answered with; nothing for files and where there was nothing to ask. */
export interface ResponseStatus {
  readonly status: number;
}

type Waiting = NonNullable<Parameters<Page["goto"]>[1]>;
const ERROR_PAGE_WAIT_MS = 2_000;

export async function navigate(
  page: Page,
  url: string,
  options: { readonly waitUntil?: Waiting["waitUntil"] | undefined; readonly timeout: number },
): Promise<ResponseStatus | undefined> {
  const { waitUntil = "load", timeout } = options;
  const go = () => page.goto(url, { waitUntil, timeout });
  try {
    return arrival(await go().catch((error: unknown) => (isOvertaken(error) ? go() : Promise.reject(error))));
  } catch (error) {
    await settle(page, error);
    throw error;
  }
}

export async function travel(
  move: (options: { readonly timeout: number }) => Promise<Response | null>,
  timeout: number,
): Promise<ResponseStatus | undefined> {
  return arrival(await move({ timeout }));
}

function arrival(response: Response | null): ResponseStatus | undefined {
  const status = response?.status() ?? 0;
  return status === 0 ? undefined : { status };
}

/** Whether the browser's page about what went wrong before broke the navigation off. */
function isOvertaken(error: unknown): boolean {
  return String(error).includes('interrupted by another navigation to "chrome-error:');
}

/** The browser shows a page about what went wrong a little later, and would break off the next navigation with it. */
async function settle(page: Page, error: unknown): Promise<void> {
  const hasErrorPage = /net::ERR_/.test(String(error)) && !/net::ERR_ABORTED/.test(String(error));
  if (!hasErrorPage) return;
  await page.waitForURL((url) => url.protocol === "chrome-error:", { timeout: ERROR_PAGE_WAIT_MS }).catch(() => {});
}

import type { BrowserContext, Page } from "playwright-core";
import { BrowserError } from "../../errors.ts";

export interface BrowserTab {
  readonly url: string;
  readonly title: string;
  readonly active: boolean;
}

const MAX_TABS = 8;
/** A page that hangs has no title to tell. */
const TITLE_WAIT_MS = 1_000;
const MAX_TITLE_CHARACTERS = 1_000;
const MAX_URL_CHARACTERS = 65_536;

/** The pages of a browser, one of which is looked at. What a page opens becomes one more, up to a number. */
export class Tabs {
  readonly #context: BrowserContext;
  readonly #pages: Page[] = [];
  #active: Page | undefined;

  constructor(context: BrowserContext) {
    this.#context = context;
    context.on("page", (page) => this.#admit(page));
  }

  /** A new one if there is none. */
  async active(): Promise<Page> {
    return this.#active ?? (await this.open());
  }

  async open(): Promise<Page> {
    if (this.#pages.length >= MAX_TABS) {
      throw new BrowserError("ACTION_FAILED", `there are ${MAX_TABS} tabs already`, { hint: "close one first" });
    }
    this.#active = await this.#context.newPage();
    return this.#active;
  }

  async activate(index: number): Promise<void> {
    const page = this.#at(index);
    await page.bringToFront();
    this.#active = page;
  }

  async close(index: number): Promise<void> {
    await this.#at(index).close();
  }

  /** One that is there for as long as `use` takes, and is not looked at. */
  async beside<T>(use: (page: Page) => Promise<T>): Promise<T> {
    const page = await this.#context.newPage();
    try {
      return await use(page);
    } finally {
      await page.close();
    }
  }

  /** In the order they were opened. */
  async list(): Promise<BrowserTab[]> {
    const describe = async (page: Page): Promise<BrowserTab> => ({
      ...(await describePage(page)),
      active: page === this.#active,
    });
    return await Promise.all(this.#pages.map(describe));
  }

  get count(): number {
    return this.#pages.length;
  }

  /** What is looked at; nothing is opened for it. */
  get current(): Page | undefined {
    return this.#active;
  }

  #at(index: number): Page {
    const page = this.#pages[index];
    if (page !== undefined) return page;
    throw new BrowserError("ACTION_FAILED", `there is no tab ${index}: there are ${this.#pages.length}`);
  }

  #admit(page: Page): void {
    page.on("close", () => this.#forget(page));
    // A page whose process has died answers nothing any more.
    page.on("crash", () => void page.close().catch(() => {}));
    // One more than are allowed: the one beside them.
    if (this.#pages.length > MAX_TABS) void page.close().catch(() => {});
    else this.#pages.push(page);
  }

  #forget(page: Page): void {
    const index = this.#pages.indexOf(page);
    if (index !== -1) this.#pages.splice(index, 1);
    if (this.#active === page) this.#active = this.#pages.at(-1);
  }
}

/** Where a page is and what it calls itself. */
export async function describePage(page: Page): Promise<{ readonly url: string; readonly title: string }> {
  const late = new Promise<string>((resolve) => setTimeout(resolve, TITLE_WAIT_MS, "").unref());
  const title = await Promise.race([page.title().catch(() => ""), late]);
  return { url: page.url().slice(0, MAX_URL_CHARACTERS), title: title.slice(0, MAX_TITLE_CHARACTERS) };
}

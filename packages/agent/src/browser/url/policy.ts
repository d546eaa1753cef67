import { isKnownPrivate } from "./address.ts";
import { hostOf, UrlPattern } from "./pattern.ts";

/**
 * Which URLs a browser may ask for.
 *
 * | allow  | what is allowed, unless `deny` has it                                            |
 * | ------ | -------------------------------------------------------------------------------- |
 * | absent | the web; outside of a sandbox without addresses of this machine and its networks |
 * | empty  | nothing                                                                          |
 * | listed | what is listed; a private address where a pattern names just this one, not by `*`  |
 */
export interface UrlRules {
  readonly allow?: readonly string[] | undefined;
  readonly deny?: readonly string[] | undefined;
}

export type Verdict =
  | { readonly allowed: true /** The host was named: it may have a private address. */; readonly mayBePrivate: boolean }
  | { readonly allowed: false; readonly reason: string };

/** What is never a page's: inside a sandbox the workspace is, and its loopback is its own. */
export type Surroundings = "sandbox" | "external";

const WEB = new Set(["http:", "https:", "ws:", "wss:"]);
/** Made of what the page has already; nothing is fetched. */
const SELF_MADE = new Set(["data:", "blob:"]);
const WORKSPACE = new UrlPattern("file:///workspace/**");

export class UrlPolicy {
  readonly #allow: readonly UrlPattern[] | undefined;
  readonly #deny: readonly UrlPattern[];
  readonly #surroundings: Surroundings;

  constructor(rules: UrlRules, surroundings: Surroundings) {
    this.#allow = rules.allow?.map((text) => new UrlPattern(text));
    this.#deny = (rules.deny ?? []).map((text) => new UrlPattern(text));
    this.#surroundings = surroundings;
  }

  /** Decides about a page, or about something that a page asks for. */
  judge(text: string): Verdict {
    const url = URL.parse(text);
    if (url === null) return refused("it is not a URL");
    if (url.protocol === "about:" || SELF_MADE.has(url.protocol)) return { allowed: true, mayBePrivate: false };
    const denying = this.#deny.find((pattern) => pattern.matches(url));
    if (denying !== undefined) return refused(`${denying.text} is denied`);
    if (this.#allow !== undefined) return this.#judgeListed(this.#allow, url);
    if (url.protocol === "file:") {
      if (this.#surroundings === "sandbox" && WORKSPACE.matches(url)) return { allowed: true, mayBePrivate: false };
      return refused("files are for the browser in the sandbox (needsFileAccess), below file:///workspace/");
    }
    if (!WEB.has(url.protocol)) return refused(`${url.protocol} is not for pages`);
    return this.#judgeAddress(hostOf(url), false);
  }

  /** Decides about where somebody wants to go: a page of the web, a file, or about:blank. */
  judgeDestination(text: string): Verdict {
    const url = URL.parse(text);
    if (url === null) return refused("it is not a URL");
    const isPlace = url.protocol === "http:" || url.protocol === "https:" || url.protocol === "file:";
    if (!isPlace && url.href !== "about:blank") return refused(`${url.protocol} is nowhere to go to`);
    return this.judge(text);
  }

  /** Decides about a connection, of which only the host, as a URL has it, and the port are known. */
  judgeConnection(hostname: string, port: string): Verdict {
    const url = URL.parse(`http://${hostname}/`);
    if (url === null || url.hostname === "" || /[/\\?#@]/.test(hostname)) return refused("it is not a host");
    const host = hostOf(url);
    const denying = this.#deny.find((pattern) => pattern.coversWholeHosts && pattern.mayMatch(host, port));
    if (denying !== undefined) return refused(`${denying.text} is denied`);
    if (this.#allow === undefined) return this.#judgeAddress(host, false);
    const allowing = this.#allow.filter((pattern) => pattern.mayMatch(host, port));
    if (allowing.length === 0) return refused("it is not among what is allowed");
    return this.#judgeAddress(
      host,
      allowing.some((pattern) => pattern.namesHost),
    );
  }

  #judgeListed(allow: readonly UrlPattern[], url: URL): Verdict {
    const allowing = allow.filter((pattern) => pattern.matches(url));
    if (allowing.length === 0) return refused("it is not among what is allowed");
    if (url.protocol === "file:") return { allowed: true, mayBePrivate: false };
    return this.#judgeAddress(
      hostOf(url),
      allowing.some((pattern) => pattern.namesHost),
    );
  }

  #judgeAddress(host: string, isNamed: boolean): Verdict {
    if (this.#surroundings === "sandbox") return { allowed: true, mayBePrivate: true };
    // To name a host of the public internet is not to trust whoever says what its address is.
    const isPrivate = isKnownPrivate(host);
    if (isNamed || !isPrivate) return { allowed: true, mayBePrivate: isPrivate };
    return refused(`${host} is an address of this machine or its networks; name it in urls.allow if it is meant`);
  }
}

function refused(reason: string): Verdict {
  return { allowed: false, reason };
}

/** What the door's envelope has. */
export interface Answer {
  readonly status: number;
  readonly success: boolean;
  readonly message: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever there is
  readonly data: any;
  readonly hint: string | null;
}

/** Speaks to the door as an AIO client does. */
export class DoorClient {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  async post(path: string, body: unknown = {}): Promise<Answer> {
    const response = await fetch(`${this.url}/v1/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, ...((await response.json()) as Omit<Answer, "status">) };
  }

  async get(path: string, method = "GET"): Promise<Answer> {
    const response = await fetch(`${this.url}/v1/${path}`, { method });
    return { status: response.status, ...((await response.json()) as Omit<Answer, "status">) };
  }

  async raw(path: string, init: RequestInit = {}): Promise<Response> {
    return await fetch(`${this.url}/${path}`, init);
  }
}

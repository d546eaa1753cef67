/** What was fetched, and from where in the end. */
export interface Download {
  readonly content: Buffer;
  readonly url: string;
}

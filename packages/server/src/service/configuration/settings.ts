/** One value that somebody gave, and where: "file server.yaml:12", "environment AGENTFENSE_…", "flag --…". */
export interface Setting {
  readonly name: string;
  readonly value: unknown;
  readonly origin: string;
}

/** What one source gave: its settings, and what is wrong with the rest of it. */
export interface Settings {
  readonly settings: readonly Setting[];
  readonly problems: readonly string[];
}

/** A key as people see it; what is empty does not apply. */
export interface KeyView {
  readonly id: string;
  readonly ownerId: string;
  readonly role: string;
  readonly name: string;
  /** ISO 8601 */
  readonly createdAt: string;
  readonly revokedAt: string;
  readonly lastUsedAt: string;
}

/** Who has the keys: a server, or the database itself. */
export interface KeyKeeper extends AsyncDisposable {
  create(request: KeyRequest): Promise<{ readonly key: KeyView; readonly secret: string }>;
  list(): Promise<readonly KeyView[]>;
  revoke(id: string): Promise<void>;
}

export interface KeyRequest {
  readonly ownerId: string;
  readonly role: "admin" | "user" | "read-only";
  readonly name: string;
}

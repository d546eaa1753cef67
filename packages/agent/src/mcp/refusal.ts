const OTHER = -32000;

/** An answer in the form of the protocol to a request that is not taken. */
export function refusal(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Response {
  return Response.json({ jsonrpc: "2.0", error: { code: OTHER, message }, id: null }, { status, headers });
}

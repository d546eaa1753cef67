// How deep a sandbox can make its tree, also by moving trees into trees. Relative paths get past the kernel's own bound, and
// without one every path that is told of, looked through or removed later costs whatever the agent liked.

/** Directories on the way to an entry, itself included. */
export const LEVELS_LIMIT = 1000;

/** Bytes of a path: sixteen times what one call can name. Programs that build long paths on purpose stop well before. */
export const PATH_LIMIT = 65_536;

/** How far down, and how long, paths can get. */
export interface PathExtent {
  readonly levels: number;
  readonly bytes: number;
}

export function exceedsBounds({ levels, bytes }: PathExtent): boolean {
  return levels > LEVELS_LIMIT || bytes > PATH_LIMIT;
}

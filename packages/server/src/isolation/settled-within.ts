/** Waits for the promise, whatever becomes of it, and no longer than this: whether that was long enough. */
export async function settledWithin(milliseconds: number, promise: Promise<unknown>): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(late.resolve, milliseconds, false);
  const settled = () => true;
  return await Promise.race([promise.then(settled, settled), late.promise]).finally(() => clearTimeout(timer));
}

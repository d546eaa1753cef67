import module from "node:module";
import { dirname } from "node:path";

/** A thread does not have its process's cache of compiled modules by itself; the variable names the directory above it. */
export function threadEnvironment(): NodeJS.ProcessEnv {
  const cache = module.getCompileCacheDir();
  return cache === undefined ? process.env : { ...process.env, NODE_COMPILE_CACHE: dirname(cache) };
}

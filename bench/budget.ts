/**
 * How many FUSE requests a workload needs when none is wasted, by workload. Each is what the kernel (6.18) has to send
 * when directories are opened without asking, attributes and entries live long, extended attributes of the security
 * module are known to be absent, writes do not ask for capabilities, and content goes through the kernel.
 */
export const REQUEST_BUDGET: Readonly<Record<string, { readonly requests: number; readonly why: string }>> = {
  "find-cold": { requests: 445, why: "two READDIR per directory" },
  "find-warm": { requests: 222, why: "at most one per directory" },
  "ls-cold": { requests: 450, why: "as find: READDIRPLUS brings the attributes" },
  "ls-warm": { requests: 0, why: "all cached" },
  "grep-cold": { requests: 30_400, why: "OPEN, READ, RELEASE per file" },
  "grep-warm": { requests: 20_000, why: "OPEN, RELEASE per file" },
  "git-status-cold": { requests: 10_500, why: "LOOKUP per file" },
  "git-status-warm": { requests: 60, why: "the files of git itself" },
  "tar-x": { requests: 36_000, why: "LOOKUP, CREATE, WRITE, 3 SETATTR, RELEASE per file" },
  create: { requests: 20_000, why: "LOOKUP, CREATE, WRITE, RELEASE per file" },
  rename: { requests: 10_000, why: "LOOKUP, RENAME per file" },
  delete: { requests: 5_000, why: "UNLINK per file" },
  "cp-r": { requests: 18_000, why: "about seven per file" },
  "write-4k": { requests: 5, why: "content goes through the kernel" },
  "write-1m": { requests: 5, why: "content goes through the kernel" },
  "read-cold": { requests: 5, why: "content goes through the kernel" },
};

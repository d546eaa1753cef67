import { AT, O, OK, RENAME, S } from "../../support/constants.ts";
import type { Call } from "../../support/probe.ts";

/** Every operation that looks at, opens, changes or removes an entry that must be there for it to work. */
export function usesOf(path: string): Call[] {
  return [...looksAt(path), ...opens(path), ["unlinkat", path], ["rmdir", path], ...changesOf(path)];
}

export function looksAt(path: string): Call[] {
  return [
    ["fstatat", path],
    ["fstatat", path, 0],
    ["statx", path],
    ["statx", path, AT.STATX_FORCE_SYNC],
    ["faccessat", path, OK.F],
    ["faccessat2", path, OK.R, AT.EACCESS],
    ["readlinkat", path],
    ["tryChdir", path],
    ["list", path],
    ["statfs", path],
    ["name_to_handle_at", path],
    ["getxattr", path, "user.any"],
    ["listxattr", path],
  ];
}

export function opens(path: string): Call[] {
  return [
    ["tryOpen", path, O.RDONLY],
    ["tryOpen", path, O.WRONLY],
    ["tryOpen", path, O.RDWR],
    ["tryOpen", path, O.PATH],
    ["tryOpen", path, O.PATH | O.NOFOLLOW],
    ["tryOpen", path, O.RDONLY | O.DIRECTORY],
    ["tryOpen", path, O.RDONLY | O.NOFOLLOW],
    ["tryOpen", path, O.RDONLY | O.NONBLOCK],
    ["tryOpen", path, O.RDONLY | O.TRUNC],
    ["tryOpen", path, O.RDWR | O.TRUNC],
  ];
}

/** Changes of what is already there: mode, owner, times, size, attributes. */
export function changesOf(path: string): Call[] {
  return [
    ["fchmodat", path, 0o777],
    ["fchmodat2", path, 0o777, AT.SYMLINK_NOFOLLOW],
    ["fchownat", path, -1, -1],
    ["fchownat", path, 12345, 12345, AT.SYMLINK_NOFOLLOW],
    ["utimensat", path, "now"],
    [
      "utimensat",
      path,
      [
        [1, 0],
        [1, 0],
      ],
      AT.SYMLINK_NOFOLLOW,
    ],
    ["truncate", path, 0],
    ["truncate", path, 100_000],
    ["setxattr", path, "user.any", "value"],
    ["lsetxattr", path, "user.any", "value"],
    ["removexattr", path, "user.any"],
  ];
}

/** Every way to make an entry at a path. `own` is a file and `ownDirectory` a directory that the agent may move. */
export function creationsAt(path: string, own: string, ownDirectory: string): Call[] {
  return [
    ["mkdirat", path],
    ["tryOpen", path, O.WRONLY | O.CREAT | O.EXCL],
    ["tryOpen", path, O.WRONLY | O.CREAT],
    ["tryOpen", path, O.RDONLY | O.CREAT],
    ["tryOpen", path, O.RDWR | O.CREAT | O.TRUNC],
    ["tryOpen", path, O.WRONLY | O.CREAT | O.APPEND],
    ["tryOpen", path, O.WRONLY | O.CREAT | O.NOFOLLOW],
    ["tryOpen2", path, { flags: O.RDWR | O.CREAT, mode: 0o600 }],
    ["symlinkat", "anywhere", path],
    ["linkat", own, path],
    ["mknodat", path, S.IFREG | 0o644],
    ["mknodat", path, S.IFIFO | 0o644],
    ["mknodat", path, S.IFSOCK | 0o644],
    ["tryBind", path],
    ["renameat2", own, path],
    ["renameat2", own, path, RENAME.NOREPLACE],
    ["renameat2", ownDirectory, path],
    ["renameat2", ownDirectory, path, RENAME.NOREPLACE],
  ];
}

/** Every way to take an entry to another name. */
export function departuresOf(path: string, to: string): Call[] {
  return [
    ["renameat2", path, to],
    ["renameat2", path, to, RENAME.NOREPLACE],
    ["linkat", path, to],
    ["linkat", path, to, AT.SYMLINK_FOLLOW],
  ];
}

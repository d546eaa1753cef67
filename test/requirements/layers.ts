import { requirements } from "./requirement.ts";

/** How the codebase and the delta make one view. */
export const LAYERS = requirements([
  ["L-01", "The view is a delta over a codebase, and the codebase is never written through the mount."],
  ["L-02", "Any number of codebase layers make one view."],
  ["L-03", "The engine never follows a symbolic link in a backing store."],
  ["L-04", "Deletions are whiteouts and opaque marks, so that a delta is a valid OCI layer."],
  [
    "L-05",
    "Marks that name nothing, the directory or its parent are never interpreted; long names have a form of their own.",
  ],
  [
    "L-06",
    "The sandbox neither sees nor creates names of marks; codebase files of such a name are plain content.",
    { shownBy: ["RO-26", "DISC-51", "DISC-52"] },
  ],
  ["L-07", "Copy-up keeps owner, mode, times, extended attributes and content."],
  ["L-08", "A reader that opened before the copy-up sees the new content."],
  ["L-09", "Hard links made in the sandbox are real."],
  ["L-10", "Hard links of the codebase are separate files once one is written.", { shownBy: ["RO-14"] }],
  ["L-11", "After a crash every file is old or new, never half, and no leftovers stay."],
  ["L-12", "Inode numbers are stable for the life of the mount and made by the engine."],
  ["L-13", "The mount is nosuid and nodev."],
  ["L-14", "Setuid and setgid bits are dropped."],
  ["L-15", "Device nodes are refused.", { shownBy: ["RO-28"] }],
  ["L-16", "The quota in bytes is EDQUOT and an event."],
  ["L-17", "The quota in files is EDQUOT and an event."],
  ["L-18", "A mount without a delta is read-only."],
  ["L-19", "A codebase's files change only by upload, delete and sync, each by temporary file and rename."],
  ["L-20", "Every live mount of a codebase is told which paths changed."],
  ["L-21", "Uploads are visible at once in running sandboxes unless the delta shadows them."],
  ["L-22", "Every change makes a version that can be listed, read, rolled back to and pinned."],
  ["L-23", "After an exec, changed paths go to the codebase under its lock; the last writer wins."],
  ["L-24", "A sync is journaled: a crash neither loses nor half-applies it."],
  ["L-25", "A synced path that is not open for writing leaves the delta; one still open stays for the next sync."],
  ["L-26", "Sync changes nothing the sandbox may not write, follows no link, and deletes only empty directories."],
  [
    "L-27",
    "A local directory is mounted itself as the codebase and never written unless asked to apply changes.",
    { shownBy: ["L-01"] },
  ],
]);

import { Errno, syscalls } from "@agentfense/fuse";
import { closing } from "../filesystem/descriptors.ts";
import { DirentType, readDirectory } from "../filesystem/directory-reader.ts";
import { utf8Of } from "../filesystem/names.ts";
import { atPath, type MountedView, type ViewPlace } from "./resolution.ts";

const { FileType, Inotify, Open, Stat } = syscalls;

const WATCHED_FOR =
  Inotify.MODIFY |
  Inotify.ATTRIB |
  Inotify.MOVED_FROM |
  Inotify.MOVED_TO |
  Inotify.CREATE |
  Inotify.DELETE |
  Inotify.DELETE_SELF |
  Inotify.MOVE_SELF |
  Inotify.ONLYDIR;

export interface MarkRequest extends MountedView {
  readonly names: readonly string[];
  readonly inotify: number;
  /** Follow a link at the end, and take a file for its entry in its directory. */
  readonly resolve: boolean;
  readonly recursive: boolean;
  /** How many directories may be marked. */
  readonly room: number;
  /** How many entries may be reported. */
  readonly report: number;
}

/** A directory that the kernel reports about from here on. */
export interface Mark {
  readonly mark: number;
  /** Relative to the top, "" for the top itself. */
  readonly path: string;
  /** The names in it, as far as they may be reported; with `recursive` only. */
  readonly entries: readonly string[];
}

export interface Marked {
  /** The directory at the top, links resolved. */
  readonly top: readonly string[];
  /** The entry of it that was asked for, when that is no directory. */
  readonly only: string | undefined;
  readonly marks: readonly Mark[];
  /** There were more entries than may be reported. */
  readonly isCut: boolean;
  /** There was no room for all directories. */
  readonly isFull: boolean;
}

interface Directory {
  readonly mark: number;
  readonly directories: readonly string[];
  readonly others: readonly string[];
}

/**
 * Marks a directory, or all from there down. Each is marked before it is read, so that what comes later is reported and what
 * was there before is found. No descriptor stays open: a mark does not hold the mount.
 */
export function* markTree(request: MarkRequest): Generator<void, Marked | number> {
  const first = atPath(request, request.names, { followLast: request.resolve }, (place) => markTop(place, request));
  if (typeof first === "number") return first;
  const { top, only, directory } = first;
  const marks: Mark[] = [];
  let room = request.report;
  const keep = (path: string, { mark, directories, others }: Directory): void => {
    const entries = [...directories, ...others];
    marks.push({ mark, path, entries: entries.slice(0, Math.max(0, room)) });
    room -= entries.length;
  };
  keep("", directory);
  const queue = [...directory.directories];
  let isFull = false;
  for (let path = queue.pop(); path !== undefined && !isFull; path = queue.pop()) {
    yield;
    const names = [...top, ...path.split("/")];
    const below = atPath(request, names, { followLast: false }, (place) => markPlace(place, request));
    isFull = marks.length >= request.room || below === -Errno.ENOSPC;
    // Gone meanwhile, or shut: then there is nothing to report.
    if (typeof below === "number") continue;
    keep(path, below);
    queue.push(...below.directories.map((name) => `${path}/${name}`));
  }
  return { top, only, marks, isCut: room < 0, isFull };
}

interface Top {
  readonly top: readonly string[];
  readonly only: string | undefined;
  readonly directory: Directory;
}

function markTop(place: ViewPlace, request: MarkRequest): Top | number {
  const { stat, way, name } = place;
  if (stat === undefined) return -Errno.ENOENT;
  const isDirectory = stat.type === FileType.DIRECTORY;
  if (!isDirectory && !request.resolve) return -Errno.ENOTDIR;
  const top = (isDirectory && name !== "." ? [...way, name] : way).map(utf8Of);
  const only = isDirectory ? undefined : utf8Of(name);
  // A path that cannot be said as text cannot be asked about either.
  if (top.includes(undefined) || (!isDirectory && only === undefined)) return -Errno.EILSEQ;
  const directory = isDirectory
    ? markPlace(place, request)
    : markDirectory(place.directory, { ...request, recursive: false });
  return typeof directory === "number" ? directory : { top: top as string[], only, directory };
}

function markPlace({ directory, name }: ViewPlace, request: MarkRequest): Directory | number {
  const fd = syscalls.openat(directory, name, Open.PATH | Open.DIRECTORY);
  if (fd < 0) return fd;
  using _open = closing(fd);
  return markDirectory(fd, request);
}

function markDirectory(directory: number, { inotify, recursive, report }: MarkRequest): Directory | number {
  // By its descriptor: no name is looked up a second time.
  const mark = syscalls.inotifyAddWatch(inotify, `/proc/self/fd/${directory}`, WATCHED_FOR);
  if (mark < 0) return mark;
  const directories: string[] = [];
  const others: string[] = [];
  if (!recursive) return { mark, directories, others };
  readDirectory(directory, (bytes, type) => {
    const below = isDirectory(directory, bytes, type);
    // One more than may be reported says that there are more.
    if (!below && others.length > report) return;
    const name = utf8Of(bytes);
    if (name !== undefined) (below ? directories : others).push(name);
  });
  return { mark, directories, others };
}

function isDirectory(directory: number, name: string, type: number): boolean {
  if (type !== DirentType.UNKNOWN) return type === DirentType.DIRECTORY;
  const stat = new Stat();
  return syscalls.statat(directory, name, stat) === 0 && stat.type === FileType.DIRECTORY;
}

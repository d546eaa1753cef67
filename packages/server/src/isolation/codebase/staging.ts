import { syscalls } from "@agentfense/fuse";
import { ContentSettler } from "../changes/durability.ts";
import { type CodebasePlace, openPart } from "./layout.ts";

const { FileType, Open, Stat } = syscalls;

export interface InspectInput extends CodebasePlace {
  readonly upload: string;
  readonly files: readonly { readonly name: string; readonly size: number }[];
}

/** Brings staged files to the disk. Gives the names of those that are not as announced: regular, one name, this size. */
export function inspectStaged({ upload, files, ...place }: InspectInput): readonly string[] {
  const directory = openPart(place, `staging/${upload}`);
  const settler = new ContentSettler();
  const stat = new Stat();
  const isRight = (name: string, size: number): boolean => {
    const fd = syscalls.openat(directory, name, Open.RDONLY | Open.NONBLOCK);
    if (fd < 0) return false;
    try {
      const isRegular = syscalls.fstat(fd, stat) === 0 && stat.type === FileType.REGULAR;
      if (!isRegular || stat.size !== size || stat.nlink !== 1) return false;
      settler.finished(fd);
      return true;
    } finally {
      syscalls.close(fd);
    }
  };
  try {
    const wrong = files.filter(({ name, size }) => !isRight(name, size)).map(({ name }) => name);
    settler.settle(directory);
    return wrong;
  } finally {
    syscalls.close(directory);
  }
}

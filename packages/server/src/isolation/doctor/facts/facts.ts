/** What the doctor looks at, as values: read by the functions of this folder, judged by those of `judgement/`. */
export interface HostFacts {
  readonly nodeVersion: string;
  /** "x64", "arm64" … */
  readonly architecture: string;
  readonly kernelRelease: string;
  readonly isRoot: boolean;
  /** `absent`, or the error with which it cannot be opened. */
  readonly fuseDevice: "usable" | "absent" | { readonly error: string };
  readonly fusermount: { readonly path: string; readonly setuid: boolean } | undefined;
  /** Whether the kernel was built with it; undefined where the configuration is not to be found. */
  readonly passthroughBuilt: boolean | undefined;
  readonly seccompActions: readonly string[];
  readonly bwrap: BwrapFacts | undefined;
  readonly namespaces: NamespaceFacts;
  readonly limits: { readonly kind: string; readonly degradations: readonly string[] } | { readonly error: string };
  readonly perl: string | undefined;
  readonly setpriv: string | undefined;
  readonly networkHelpers: readonly string[];
  readonly docker: DockerFacts;
}

export interface BwrapFacts {
  readonly path: string;
  /** "0.8.0"; undefined when it does not say. */
  readonly version: string | undefined;
  /** Of the distribution's package that brought this very file. */
  readonly package: { readonly kind: "dpkg" | "rpm"; readonly version: string } | undefined;
}

export interface NamespaceFacts {
  /** A box with every namespace of its own was really made, or what was said instead. Undefined without bwrap. */
  readonly attempt: { readonly works: true } | { readonly works: false; readonly message: string } | undefined;
  readonly maxUserNamespaces: number | undefined;
  /** Debian's older switch; undefined on kernels that do not have it. */
  readonly unprivilegedClone: boolean | undefined;
  readonly apparmor: {
    /** kernel.apparmor_restrict_unprivileged_userns is 1. */
    readonly restricted: boolean;
    /** A profile for bwrap that is set up. */
    readonly profile: string | undefined;
    /** A profile for bwrap that the distribution brings along but does not set up. */
    readonly spareProfile: string | undefined;
  };
}

export type DockerFacts =
  | {
      readonly reachable: true;
      readonly socket: string;
      readonly version: string;
      readonly runtimes: readonly string[];
      readonly cgroupDriver: string;
      readonly cgroupVersion: string;
    }
  | { readonly reachable: false; readonly socket: string; readonly error: string };

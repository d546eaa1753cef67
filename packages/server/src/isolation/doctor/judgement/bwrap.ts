import { reasonSafeFromSetupEscape, SETUP_ESCAPE } from "../bubblewrap-advisory.ts";
import type { HostFacts, NamespaceFacts } from "../facts/facts.ts";
import { broken, doubtful, type Finding, fine, type RealRuntime } from "../finding.ts";

const concerns: readonly RealRuntime[] = ["bwrap"];

export function judgeBwrap({ bwrap }: Pick<HostFacts, "bwrap">): Finding {
  if (bwrap === undefined) {
    return broken("bwrap", "there is no bwrap", { fix: "install the package bubblewrap", concerns });
  }
  const { path, version, package: origin } = bwrap;
  if (version === undefined) {
    return broken("bwrap", `${path} does not tell its version`, { fix: "install the package bubblewrap", concerns });
  }
  const name = `bwrap ${version}${origin === undefined ? "" : ` (package ${origin.version})`}`;
  const safe = reasonSafeFromSetupEscape(version, origin?.kind === "dpkg" ? origin.version : undefined);
  if (safe !== undefined) return fine("bwrap", `${name}, without ${SETUP_ESCAPE.id} (${safe})`, concerns);
  return doubtful("bwrap", `${name} may have ${SETUP_ESCAPE.id}: setting up follows symlinks out of the box`, {
    fix: `install bubblewrap ${SETUP_ESCAPE.fixedUpstream} or newer; until then no --root or --read-only-path that others may write`,
    concerns,
  });
}

/** Whether a box can be made at all, and if not, which of the usual obstacles it is. */
export function judgeNamespaces({ namespaces, isRoot }: Pick<HostFacts, "namespaces" | "isRoot">): Finding {
  const check = "user-namespaces";
  const { attempt } = namespaces;
  if (attempt === undefined) {
    return doubtful(check, "not tried: there is no bwrap", { fix: "install the package bubblewrap", concerns });
  }
  if (attempt.works)
    return fine(check, `a box with namespaces of its own can be made${isRoot ? "" : " as this user"}`, concerns);
  return broken(check, `no box can be made: ${attempt.message}`, { fix: fixForNamespaces(namespaces), concerns });
}

function fixForNamespaces(namespaces: NamespaceFacts): string {
  if (namespaces.maxUserNamespaces === 0) return RAISE_MAXIMUM;
  if (namespaces.unprivilegedClone === false) return "sudo sysctl -w kernel.unprivileged_userns_clone=1";
  if (namespaces.apparmor.restricted) return apparmorFix(namespaces.apparmor);
  return "in a container, allow user namespaces and mounts: --security-opt seccomp=unconfined --security-opt systempaths=unconfined";
}

const RAISE_MAXIMUM = "sudo sysctl -w user.max_user_namespaces=15000 (and the same in /etc/sysctl.d/ to keep it)";

export function judgeNamespaceMaximum({ namespaces }: Pick<HostFacts, "namespaces">): Finding {
  const check = "max-user-namespaces";
  const maximum = namespaces.maxUserNamespaces;
  if (maximum === undefined) {
    const fix = "use a kernel with CONFIG_USER_NS";
    return broken(check, "the kernel has no user namespaces", { fix, concerns });
  }
  if (maximum > 0) return fine(check, `up to ${maximum} user namespaces`, concerns);
  return broken(check, "user namespaces are switched off (user.max_user_namespaces is 0)", {
    fix: RAISE_MAXIMUM,
    concerns,
  });
}

/** A restriction that a profile lifts for bwrap is no obstacle; whether it really is lifted, the attempt tells. */
export function judgeApparmor({ namespaces }: Pick<HostFacts, "namespaces">): Finding {
  const check = "apparmor";
  const { apparmor, attempt } = namespaces;
  if (!apparmor.restricted) return fine(check, "AppArmor does not restrict user namespaces", concerns);
  const works = attempt?.works === true;
  if (apparmor.profile !== undefined || works) {
    return fine(check, `AppArmor restricts user namespaces; ${apparmor.profile ?? "bwrap is let through"}`, concerns);
  }
  return broken(check, "AppArmor restricts user namespaces and has no profile for bwrap", {
    fix: apparmorFix(apparmor),
    concerns,
  });
}

function apparmorFix({ spareProfile }: NamespaceFacts["apparmor"]): string {
  if (spareProfile !== undefined) {
    return `sudo cp ${spareProfile} /etc/apparmor.d/ && sudo systemctl reload apparmor`;
  }
  const profile = "abi <abi/4.0>,\\nprofile bwrap /usr/bin/bwrap flags=(unconfined) {\\n  userns,\\n}\\n";
  return `printf '${profile}' | sudo tee /etc/apparmor.d/bwrap && sudo systemctl reload apparmor`;
}

export function judgeLimits({ limits, isRoot }: Pick<HostFacts, "limits" | "isRoot">): Finding {
  const check = "limits";
  if ("error" in limits) {
    return doubtful(check, `limits cannot be enforced: ${limits.error}`, { fix: howToDelegate(isRoot), concerns });
  }
  if (limits.degradations.length === 0) return fine(check, `limits are enforced by ${limits.kind}`, concerns);
  // The last sentence is what to do about the others.
  const gaps = limits.degradations.slice(0, -1).map((sentence) => sentence.replace(/\.$/, ""));
  const fix = limits.degradations.at(-1)?.replace(/\.$/, "") ?? howToDelegate(isRoot);
  return doubtful(check, `limits are weaker here, by ${limits.kind}: ${gaps.join("; ")}`, { fix, concerns });
}

function howToDelegate(isRoot: boolean): string {
  return isRoot
    ? "mount cgroup v2 with the controllers memory, cpu and pids, writable"
    : "start it in a delegated group: systemd-run --user --scope -p Delegate=yes agentfense …";
}

export function judgePerl({ perl }: Pick<HostFacts, "perl">): Finding {
  if (perl !== undefined) return fine("perl", `perl at ${perl}`, concerns);
  return broken("perl", "there is no perl, which starts the boxes and their commands", {
    fix: "install the package perl",
    concerns,
  });
}

export function judgeSetpriv({ setpriv, isRoot }: Pick<HostFacts, "setpriv" | "isRoot">): Finding {
  if (setpriv !== undefined) return fine("setpriv", `setpriv at ${setpriv}`, concerns);
  if (!isRoot) return fine("setpriv", "setpriv is not needed: only root has a user to leave", concerns);
  return broken("setpriv", "there is no setpriv, with which root becomes an ordinary user", {
    fix: "install the package util-linux",
    concerns,
  });
}

/** What a private network needs, and the package it comes in. */
export const NETWORK_HELPERS = { pasta: "passt", nsenter: "util-linux", "iptables-restore": "iptables" } as const;

export function judgeNetworkHelper({ networkHelpers }: Pick<HostFacts, "networkHelpers">): Finding {
  const missing = Object.entries(NETWORK_HELPERS).filter(([program]) => !networkHelpers.includes(program));
  if (missing.length === 0) return fine("network-helper", "a private network can be made with pasta", concerns);
  const fix = `only for --network: install ${missing.map(([, name]) => name).join(", ")}`;
  const programs = missing.map(([program]) => program).join(", ");
  return doubtful("network-helper", `a private network cannot be made without ${programs}`, { fix, concerns });
}

import { check, Errno, SystemError } from "./errno.ts";
import { type FuseSession, Turn } from "./fuse-session.ts";
import * as sys from "./native/syscalls.ts";
import { conditionsOfThread, Spin } from "./spin.ts";

/** Work done in slices between requests: each call does a few milliseconds of it and says whether it is finished. */
export type BackgroundJob = () => boolean;

/** Requests handled at most to catch up: clients go on asking meanwhile. */
const CATCH_UP = 1024;

/**
 * Serves any number of sessions on the calling thread. The thread sleeps in epoll_wait, after a moment in which the next
 * request may come (see Spin); `doorbell`, an eventfd, is how others wake it.
 */
export class ServeLoop {
  readonly doorbell: number;
  readonly #epoll: number;
  readonly #sessions = new Map<number, FuseSession>();
  readonly #jobs: BackgroundJob[] = [];
  readonly #onClosed: (session: FuseSession) => void;
  readonly #onDoorbell: () => void;
  readonly #onTurn: () => void;
  readonly #conditions = conditionsOfThread();
  readonly #spin: Spin;
  readonly #look = (): number => sys.epollWait(this.#epoll, 0);
  readonly #doorbellValue = new Uint8Array(8);
  #stopped = false;

  constructor(options: {
    onDoorbell: () => void;
    onClosed: (session: FuseSession) => void;
    /** After each request, each message and each slice of background work: others are served now. */
    onTurn?: () => void;
    /** Where the threads of a process that run such loops count those that are awake. */
    awake?: Int32Array;
  }) {
    this.#epoll = check("epoll_create1", sys.epollCreate());
    this.doorbell = check("eventfd", sys.eventfd());
    this.#onDoorbell = options.onDoorbell;
    this.#onClosed = options.onClosed;
    this.#onTurn = options.onTurn ?? (() => {});
    this.#spin = new Spin(options.awake ?? new Int32Array(1), this.#conditions);
    check("epoll_ctl", sys.epollControl(this.#epoll, sys.EpollControl.ADD, this.doorbell));
  }

  add(session: FuseSession): void {
    this.#sessions.set(session.fd, session);
    check("epoll_ctl", sys.epollControl(this.#epoll, sys.EpollControl.ADD, session.fd));
  }

  remove(session: FuseSession): void {
    if (!this.#sessions.delete(session.fd)) return;
    sys.epollControl(this.#epoll, sys.EpollControl.DELETE, session.fd);
  }

  background(job: BackgroundJob): void {
    this.#jobs.push(job);
  }

  /** Handles what is queued for a session by now, before something is done that depends on it. */
  catchUp(session: FuseSession): void {
    for (let i = 0; i < CATCH_UP && this.#sessions.has(session.fd); i++) {
      const turn = session.turn();
      this.#onTurn();
      if (turn === Turn.CLOSED) this.#close(session);
      if (turn === Turn.IDLE) return;
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Returns after stop(). */
  run(): void {
    this.#spin.wakes();
    try {
      this.#run();
    } finally {
      this.#spin.sleeps();
    }
  }

  #run(): void {
    let served = false;
    while (!this.#stopped) {
      const ready = this.#wait(served);
      served = false;
      if (ready < 0) {
        // Anything else is a signal, or an errno that is not ours (see syscalls.ts).
        if (-ready !== Errno.EBADF && -ready !== Errno.EINVAL) continue;
        throw new SystemError("epoll_wait", -ready);
      }
      for (let i = 0; i < ready; i++) {
        const fd = sys.epollReady(i);
        if (fd === this.doorbell) {
          sys.read(this.doorbell, this.#doorbellValue, 8);
          this.#onDoorbell();
          this.#onTurn();
        } else {
          this.#serve(fd);
          served = true;
        }
      }
      this.#work();
    }
  }

  #wait(served: boolean): number {
    if (this.#jobs.length > 0) return this.#look();
    const found = served ? this.#spin.look(this.#look) : 0;
    if (found !== 0) return found;
    this.#spin.sleeps();
    const ready = sys.epollWait(this.#epoll, -1);
    this.#spin.wakes();
    return ready;
  }

  close(): void {
    sys.close(this.#epoll);
    sys.close(this.doorbell);
    this.#conditions[Symbol.dispose]();
  }

  // After an answer its receiver has to run before it can ask again, so looking at once would find nothing; after a
  // RELEASE or FORGET more is likely queued. A few at most, so that one busy mount does not starve the others.
  #serve(fd: number): void {
    const session = this.#sessions.get(fd);
    if (session === undefined) return;
    for (let i = 0; i < 16; i++) {
      const turn = session.turn();
      this.#onTurn();
      if (turn === Turn.CLOSED) {
        this.#close(session);
        return;
      }
      if (turn !== Turn.HANDLED) return;
    }
  }

  #close(session: FuseSession): void {
    this.remove(session);
    this.#onClosed(session);
  }

  #work(): void {
    const job = this.#jobs.shift();
    if (job === undefined) return;
    if (!job()) this.#jobs.push(job);
    this.#onTurn();
  }
}

/** Wakes a ServeLoop from any thread of the process. */
export function ring(doorbell: number): void {
  const one = new Uint8Array(8);
  one[0] = 1;
  sys.write(doorbell, one, 8);
}

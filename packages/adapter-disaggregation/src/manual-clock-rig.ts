import type { Clock } from './clock.ts';

/** A clock that goes when it is told to. */
export interface ManualClock extends Clock {
  readonly numTimers: number;
  advance(ms: number): void;
}

export function manualClock(): ManualClock {
  let now = 0;
  let timers: { at: number; call: () => void }[] = [];
  return {
    now: () => now,
    after(delayMs, call) {
      const timer = { at: now + delayMs, call };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    get numTimers() {
      return timers.length;
    },
    advance(ms) {
      const end = now + ms;
      for (;;) {
        const next = timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
        if (next === undefined) break;
        now = Math.max(now, next.at);
        timers = timers.filter((other) => other !== next);
        next.call();
      }
      now = end;
    },
  };
}

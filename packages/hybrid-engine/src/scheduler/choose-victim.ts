import { byRank, type Task } from './task.ts';

/** Whose place on the device may be taken although somebody waits for him. */
export type Claim =
  /** Of all that come behind in rank: for one that is on the device itself. */
  | 'rank'
  /** Only of those with a lower priority: for one that wants to come in. */
  | 'priority';

/**
 * Who gives way so that `needing` can go on: one that nobody waits for, or else the last in rank of those that come behind
 * `needing`. Of equals one that is on the device gives first, as others may hold nothing there.
 *
 * @returns undefined when nobody has to
 */
export function chooseVictim(tasks: Iterable<Task>, needing: Task, claim: Claim): Task | undefined {
  let victim: Task | undefined;
  for (const task of tasks) {
    if (task === needing || task.ended || !task.holding || !mayTake(task, needing, claim)) continue;
    if (victim === undefined || givesBefore(task, victim)) victim = task;
  }
  return victim;
}

function mayTake(task: Task, needing: Task, claim: Claim): boolean {
  if (!task.wanted) return true;
  if (task.active && claim === 'priority') return task.priority < needing.priority;
  return byRank(task, needing) > 0;
}

function givesBefore(a: Task, b: Task): boolean {
  if (a.wanted !== b.wanted) return b.wanted;
  if (a.active !== b.active) return a.active;
  return byRank(a, b) > 0;
}

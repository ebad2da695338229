import { expect, test } from 'vitest';
import { type Claim, chooseVictim } from './choose-victim.ts';
import type { Task } from './task.ts';

const task = (more: Partial<Task>): Task =>
  ({ priority: 0, arrival: 0, wanted: true, ended: false, active: true, holding: true, ...more }) as Task;

const needing = task({ arrival: 5 });

test.each<[string, Claim, Partial<Task>[], number | undefined]>([
  ['the last to arrive of those behind', 'rank', [{ arrival: 6 }, { arrival: 8 }, { arrival: 7 }], 1],
  ['a lower priority before a later arrival', 'rank', [{ arrival: 9 }, { arrival: 1, priority: -1 }], 1],
  ['nobody who comes before', 'rank', [{ arrival: 1 }, { arrival: 9, priority: 1 }], undefined],
  ['one that nobody waits for, whatever his rank', 'rank', [{ arrival: 9 }, { arrival: 1, priority: 3, wanted: false }], 1],
  ['one that is on the device before one that is not', 'rank', [{ arrival: 9, active: false }, { arrival: 6 }], 1],
  [
    'nobody that holds nothing or has ended',
    'rank',
    [
      { arrival: 9, holding: false },
      { arrival: 9, ended: true },
    ],
    undefined,
  ],
  ['for one that comes in, only those of lower priority', 'priority', [{ arrival: 9 }, { arrival: 6, priority: -1 }], 1],
  ['for one that comes in, those behind that wait with what they claimed', 'priority', [{ arrival: 9, active: false }], 0],
])('%s', (_, claim, others, victim) => {
  const tasks = others.map(task);
  const chosen = chooseVictim([needing, ...tasks], needing, claim);
  expect(chosen).toBe(victim === undefined ? undefined : tasks[victim]);
});

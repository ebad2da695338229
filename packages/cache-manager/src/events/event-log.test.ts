import { describe, expect, test } from 'vitest';
import type { KvEvent } from '../ports/kv-event-sink.ts';
import { EventLog } from './event-log.ts';

const events = (begin: number, end: number): KvEvent[] =>
  Array.from({ length: end - begin }, (_, i) => ({ id: begin + i, type: 'cleared' }));
const ids = (list: readonly KvEvent[]) => list.map(({ id }) => id);

describe('a log', () => {
  test('gives what was pushed, once when it is taken', () => {
    const log = new EventLog();
    log.push(events(0, 2));
    log.push(events(2, 3));
    expect(ids(log.read())).toEqual([0, 1, 2]);
    expect(ids(log.take())).toEqual([0, 1, 2]);
    expect(log.take()).toEqual([]);
  });

  test('keeps the latest events, and says how many it dropped', () => {
    const log = new EventLog({ capacity: 2 });
    log.push(events(0, 3));
    expect([log.dropped, ids(log.read()), log.dropped]).toEqual([1, [1, 2], 1]);
    for (let i = 3; i < 100; i++) log.push(events(i, i + 1));
    expect([log.dropped, ids(log.take()), log.dropped]).toEqual([98, [98, 99], 98]);
  });

  test('of no event is refused', () => {
    for (const capacity of [0, 1.5, Number.NaN])
      expect(() => new EventLog({ capacity })).toThrow(expect.objectContaining({ code: 'invalid-capacity' }));
  });
});

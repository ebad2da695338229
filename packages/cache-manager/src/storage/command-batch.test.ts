import { describe, expect, test } from 'vitest';
import { full, windowed } from '../../test/support/stage.ts';
import { storeOf } from '../../test/support/store.ts';
import type { PageCommand } from '../ports/page-device.ts';
import { HostPageDevice } from '../tiers/host-page-device.ts';
import { CommandBatch } from './command-batch.ts';

class LoggingDevice extends HostPageDevice {
  readonly submissions: string[][] = [];

  override execute(commands: readonly PageCommand[]): void {
    this.submissions.push(
      commands.map((command) => {
        const group = command.pools[0].spec.label;
        if (command.kind === 'clear') return `${group}: clear ${command.slots.subarray(0, command.count)}`;
        return `${group}: copy ${command.sources.subarray(0, command.count)} to ${command.targets.subarray(0, command.count)}`;
      }),
    );
  }
}

function batchOf() {
  const device = new LoggingDevice();
  const { storage } = storeOf([full(), windowed(8)], { slots: 64 }, device);
  const copied: string[] = [];
  const batch = new CommandBatch(storage, 2, (group, count) => void copied.push(`${count} of group ${group}`));
  return { device, storage, batch, copied };
}

describe('a batch', () => {
  test('of nothing is not submitted', () => {
    const { device, batch } = batchOf();
    batch.execute();
    expect(device.submissions).toEqual([]);
  });

  test('is one submission, with one command a kind and pool group', () => {
    const { device, batch } = batchOf();
    batch.copy(0, 0, 1, 2);
    batch.clear(1, 5);
    batch.copy(0, 0, 3, 4);
    batch.copy(1, 1, 0, 1);
    batch.execute();
    expect(device.submissions).toEqual([
      ['pool group 0 pool 0: copy 1,3 to 2,4', 'pool group 1 pool 0: copy 0 to 1', 'pool group 1 pool 0: clear 5'],
    ]);
  });

  test('is forgotten once it was handed in', () => {
    const { device, batch } = batchOf();
    batch.clear(0, 1);
    batch.execute();
    batch.execute();
    expect(device.submissions.length).toBe(1);
  });

  test('may be long', () => {
    const { device, batch } = batchOf();
    for (let i = 0; i < 50; i++) batch.copy(0, 0, i, i + 1);
    batch.execute();
    const numbers = (from: number) => Array.from({ length: 50 }, (_, i) => i + from).join(',');
    expect(device.submissions).toEqual([[`pool group 0 pool 0: copy ${numbers(0)} to ${numbers(1)}`]]);
  });

  test('tells whose pages were copied once the device has taken it, and never when it refuses', () => {
    const { device, batch, copied } = batchOf();
    batch.copy(0, 0, 1, 2);
    batch.copy(1, 1, 0, 1);
    batch.copy(0, 0, 3, 4);
    batch.clear(0, 5);
    expect(copied).toEqual([]);
    batch.execute();
    expect(copied).toEqual(['2 of group 0', '1 of group 1']);
    const { execute } = device;
    device.execute = () => {
      throw new Error('not today');
    };
    batch.copy(0, 0, 1, 2);
    expect(() => batch.execute()).toThrow();
    device.execute = execute;
    batch.clear(0, 5);
    batch.execute();
    expect(copied).toEqual(['2 of group 0', '1 of group 1']);
  });

  test('that the device refuses is forgotten too, and gives back the pages that were made for it', () => {
    const { device, batch, storage } = batchOf();
    device.execute = () => {
      throw new Error('not today');
    };
    const { free } = storage.poolGroups[0].slots;
    const page = storage.createHeld(0, 35);
    batch.copy(0, 0, 9, storage.pages.slot[page]);
    expect(() => batch.execute([page])).toThrow('not today');
    expect([storage.poolGroups[0].slots.free, storage.pages.isLive(page)]).toEqual([free, false]);
    expect(() => batch.execute()).not.toThrow();
  });
});

import { expect, test } from 'vitest';
import { Backoff } from '../remote/backoff.ts';
import { OwnLink, type RedisConnection } from './own-link.ts';

/** Connections that do as they are told: `fates` are those of the first ones, later ones connect. */
function rig(fates: readonly ('connects' | 'fails' | 'hangs')[], keepBroken = false) {
  const made: (RedisConnection & { destroyed: boolean })[] = [];
  const make = () => {
    const fate = fates[made.length] ?? 'connects';
    const connection = {
      destroyed: false,
      onBroken: () => {},
      connect: async () => {
        if (fate === 'fails') throw new Error('refused');
        if (fate === 'hangs') await new Promise(() => {});
      },
      send: async () => made.indexOf(connection),
      destroy: () => {
        connection.destroyed = true;
      },
    };
    made.push(connection);
    return connection;
  };
  return { made, link: new OwnLink({ make, connectTimeoutMs: 20, backoff: new Backoff({ minMs: 1, maxMs: 2 }), keepBroken }) };
}

const send = (link: OwnLink) => link.send('key', [], {});
const turns = async (link: OwnLink, connects: number) => {
  while (link.connects < connects) await new Promise(setImmediate);
};

test('a connection that fails or hangs is given up, and the next one is tried', async () => {
  const { made, link } = rig(['fails', 'hangs', 'connects']);
  await link.firstTry;
  expect(link.usable).toBe(false);
  await expect(send(link)).rejects.toThrow();
  await turns(link, 1);
  expect(await send(link)).toBe(2);
  expect(made.map(({ destroyed }) => destroyed)).toEqual([true, true, false]);
  await link.close();
});

test.each([true, false])('a broken connection is replaced once; until then it is in use: %s', async (keepBroken) => {
  const { made, link } = rig([], keepBroken);
  await link.firstTry;
  made[0].onBroken();
  link.broken();
  expect(link.usable).toBe(keepBroken);
  await turns(link, 2);
  made[0].onBroken();
  expect(await send(link)).toBe(1);
  expect(made.map(({ destroyed }) => destroyed)).toEqual([true, false]);
  await link.close();
});

test('nothing is connected after close, which waits for no server', async () => {
  const { made, link } = rig(['hangs']);
  await link.close();
  await link.firstTry;
  link.broken();
  expect(link.usable).toBe(false);
  expect(made.every(({ destroyed }) => destroyed)).toBe(true);
});

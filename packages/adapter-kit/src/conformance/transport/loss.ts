import { BrokenPromiseError, ensure, ensureCode, ensureEqual } from '../assertions.ts';
import { bytesOf, contentOf, overLine, streamOf } from './harness.ts';

export const aborts = overLine(
  { name: 'drops what is of an aborted generation on both sides, and nothing else' },
  async ({ near, far, soon }) => {
    await soon(near.sendPages({ stream: streamOf('given-up', 4), firstPage: 0, bytes: bytesOf(1) }), 'sendPages');
    await soon(near.send({ stream: streamOf('other', 4), body: bytesOf(2) }), 'send');
    await soon(near.abort('given-up', 4, 'the client left'), 'abort');
    await soon(
      near.sendPages({ stream: streamOf('given-up', 3), firstPage: 0, bytes: bytesOf(3) }),
      'sendPages of an aborted generation',
    );
    await soon(
      near.sendPages({ stream: streamOf('given-up', 5), firstPage: 0, bytes: bytesOf(4) }),
      'sendPages of the next generation',
    );
    const seen = [];
    for (let i = 0; i < 3; i++) seen.push(await soon(far.receive(), 'receive'));
    ensureEqual(
      seen,
      [
        { kind: 'message', stream: streamOf('other', 4), body: bytesOf(2) },
        { kind: 'aborted', request: 'given-up', generation: 4, reason: 'the client left' },
        { kind: 'pages', stream: streamOf('given-up', 5), firstPage: 0, bytes: bytesOf(4) },
      ],
      'what came around an abort',
    );
    // What the other side still sends of it is of no use here.
    await soon(
      far.sendPages({ stream: streamOf('given-up', 4), firstPage: 0, bytes: bytesOf(5) }),
      'sendPages from the other side',
    );
    await soon(far.send({ stream: streamOf('given-up', 5), body: bytesOf(6) }), 'send from the other side');
    ensureEqual(contentOf(await soon(near.receive(), 'receive')), bytesOf(6), 'what came after an abort');
  },
);

export const retires = overLine({ name: 'drops late pages of a generation that was retired' }, async ({ near, far, soon }) => {
  await soon(near.sendPages({ stream: streamOf('moved-on', 0), firstPage: 0, bytes: bytesOf(1) }), 'sendPages');
  far.retire('moved-on', 1);
  far.retire('moved-on', 0);
  await soon(near.sendPages({ stream: streamOf('moved-on', 1), firstPage: 0, bytes: bytesOf(2) }), 'sendPages');
  await soon(near.sendPages({ stream: streamOf('moved-on', 2), firstPage: 0, bytes: bytesOf(3) }), 'sendPages');
  ensureEqual(
    contentOf(await soon(far.receive(), 'receive')),
    bytesOf(3),
    'the first that came of a generation that was not retired',
  );
});

export const saysLost = overLine(
  { name: 'says that the other side is lost once it has closed, after all that it had sent' },
  async ({ near, far, soon }) => {
    await soon(near.send({ stream: streamOf(), body: bytesOf(1) }), 'send');
    await soon(near.sendPages({ stream: streamOf(), firstPage: 0, bytes: bytesOf(2) }), 'sendPages');
    await soon(near.close(), 'close of a connection');
    ensureEqual(contentOf(await soon(far.receive(), 'receive')), bytesOf(1), 'what was sent before the close');
    ensureEqual(contentOf(await soon(far.receive(), 'receive')), bytesOf(2), 'what was sent before the close');
    await ensureCode(() => soon(far.receive(), 'receive'), 'peer-lost', 'receive after the other side closed');
    await ensureCode(
      () => sendUntilItFails(() => soon(far.send({ stream: streamOf(), body: bytesOf(3) }), 'send')),
      'peer-lost',
      'send after the other side closed',
    );
  },
);

export const cutOff = overLine(
  { name: 'says that the other side is lost when the network fails, to whoever waits', needs: 'cut' },
  async ({ near, far, soon }, harness) => {
    const waiting = [near.receive(), far.receive()];
    for (const each of waiting) each.catch(() => {});
    await harness.cut?.(near);
    for (const each of waiting) await ensureCode(() => soon(each, 'receive'), 'peer-lost', 'receive when the network fails');
    await ensureCode(
      () => sendUntilItFails(() => soon(near.sendPages({ stream: streamOf(), firstPage: 0, bytes: bytesOf(1) }), 'sendPages')),
      'peer-lost',
      'sendPages after the network failed',
    );
  },
);

export const damaged = overLine(
  { name: 'never delivers damaged pages, and says so', flag: 'damageReports', needs: 'damageNext' },
  async ({ pair, near, far, soon }, harness) => {
    await harness.damageNext?.(pair);
    await soon(near.sendPages({ stream: streamOf(), firstPage: 0, bytes: bytesOf(1) }), 'sendPages');
    await soon(near.sendPages({ stream: streamOf(), firstPage: 1, bytes: bytesOf(2) }), 'sendPages');
    ensureEqual(await soon(far.receive(), 'receive'), { kind: 'damaged' }, 'what came of damaged pages');
    ensureEqual(contentOf(await soon(far.receive(), 'receive')), bytesOf(2), 'what came after damaged pages');
  },
);

/** Some networks notice only at a later call that nobody is there. */
async function sendUntilItFails(send: () => Promise<void>): Promise<void> {
  for (let turn = 0; turn < 50; turn++) {
    await send();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new BrokenPromiseError('50 sends went through with nobody there');
}

export const interrupted = overLine(
  { name: 'stops waiting when the signal is aborted, and goes on as if nothing had been' },
  async ({ near, far, soon }) => {
    const reason = new Error('aborted by the suite');
    const controller = new AbortController();
    const waiting = far.receive({ signal: controller.signal });
    waiting.catch(() => {});
    controller.abort(reason);
    let error: unknown;
    try {
      await soon(waiting, 'receive with an aborted signal');
    } catch (thrown) {
      error = thrown;
    }
    ensure(error === reason, `receive with an aborted signal: expected the reason of the signal, got ${String(error)}`);
    await soon(near.send({ stream: streamOf(), body: bytesOf(1) }), 'send');
    ensureEqual(contentOf(await soon(far.receive(), 'receive')), bytesOf(1), 'what came after an aborted receive');
  },
);

import type { CallOptions } from '../plugin.ts';
import { ensure, ensureCode, failureOf, settled } from './assertions.ts';
import { type ConformancePromise, DEFAULT_PATIENCE_MS, type SuiteHarness } from './suite.ts';

/** What the trait must know of a kind of plugin. */
export interface LifecycleTrait<Harness extends SuiteHarness, Open extends { close(): Promise<void> }> {
  /** A fresh plugin, and what gives everything back that the harness made for it. */
  open(harness: Harness): Promise<{ plugin: Open; end: () => Promise<void> }>;
  /** Every method that takes a signal, with arguments that are fine. */
  readonly calls: Readonly<Record<string, (plugin: Open, options: CallOptions) => Promise<unknown> | undefined>>;
}

/** What holds for every asynchronous method of every plugin. */
export function lifecyclePromises<Harness extends SuiteHarness, Open extends { close(): Promise<void> }>({
  open,
  calls,
}: LifecycleTrait<Harness, Open>): ConformancePromise<Harness>[] {
  const withPlugin = (story: (plugin: Open, patienceMs: number) => Promise<void>) => async (harness: Harness) => {
    const { plugin, end } = await open(harness);
    try {
      await story(plugin, harness.patienceMs ?? DEFAULT_PATIENCE_MS);
    } finally {
      await end();
    }
  };
  const each = Object.entries(calls);
  return [
    {
      name: 'begins no call whose signal is aborted, and rejects with its reason',
      run: withPlugin(async (plugin, patienceMs) => {
        const reason = new Error('aborted by the suite');
        for (const [name, call] of each) {
          const running = call(plugin, { signal: AbortSignal.abort(reason) });
          if (running === undefined) continue;
          const error = await failureOf(() => settled(running, patienceMs, name), `${name} with an aborted signal`);
          ensure(error === reason, `${name} with an aborted signal: expected the reason of the signal, got ${String(error)}`);
        }
      }),
    },
    {
      name: 'rejects every call after close',
      run: withPlugin(async (plugin, patienceMs) => {
        await settled(plugin.close(), patienceMs, 'close');
        for (const [name, call] of each) {
          await ensureCode(() => pending(call, plugin, patienceMs, name), 'plugin-closed', `${name} after close`);
        }
      }),
    },
    {
      name: 'settles every call that is under way when it closes',
      run: withPlugin(async (plugin, patienceMs) => {
        const running = each.map(([name, call]) => ({ name, promise: call(plugin, {}) }));
        for (const { promise } of running) promise?.catch(() => {});
        const closing = plugin.close();
        for (const { name, promise } of running) {
          if (promise === undefined) continue;
          await settled(Promise.allSettled([promise]), patienceMs, `${name}, begun before close`);
        }
        await settled(closing, patienceMs, 'close');
      }),
    },
    {
      name: 'may be closed again, during the first close and after it',
      run: withPlugin(async (plugin, patienceMs) => {
        await settled(Promise.all([plugin.close(), plugin.close()]), patienceMs, 'two calls of close');
        await settled(plugin.close(), patienceMs, 'close after close');
      }),
    },
  ];
}

/** A call that the plugin does not have counts as refused. */
function pending<Open>(
  call: (plugin: Open, options: CallOptions) => Promise<unknown> | undefined,
  plugin: Open,
  patienceMs: number,
  name: string,
): Promise<unknown> {
  const running = call(plugin, {});
  return running === undefined ? Promise.reject({ code: 'plugin-closed' }) : settled(running, patienceMs, name);
}

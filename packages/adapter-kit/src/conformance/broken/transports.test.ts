import { AdapterError } from '../../errors.ts';
import type { PageConnection, PageTransport } from '../../transport/page-transport.ts';
import type { PageTransportHarness } from '../transport/harness.ts';
import { memoryTransportHarness } from '../transport/memory-transport-rig.ts';
import { pageTransportSuite } from '../transport/suite.ts';
import { type Broken, testSuiteCatches } from './catches-rig.ts';

interface Faults {
  transport?: (right: PageTransport) => Partial<PageTransport>;
  connection?: (right: PageConnection) => Partial<PageConnection>;
}

/** A memory transport with a fault in it, or in its connections. */
function withFault({ transport = () => ({}), connection = () => ({}) }: Faults): PageTransportHarness {
  const wrapped = (right: PageConnection): PageConnection => {
    const all: PageConnection = {
      send: (message, options) => right.send(message, options),
      sendPages: (pages, options) => right.sendPages(pages, options),
      receive: (options) => right.receive(options),
      abort: (request, generation, reason) => right.abort(request, generation, reason),
      retire: (request, generation) => right.retire(request, generation),
      get bytesInFlight() {
        return right.bytesInFlight;
      },
      close: () => right.close(),
    };
    return Object.defineProperties(all, Object.getOwnPropertyDescriptors(connection(right)));
  };
  const harness = memoryTransportHarness((right) => ({
    specVersion: right.specVersion,
    name: right.name,
    supports: right.supports,
    limits: right.limits,
    async listen(address, options) {
      const listener = await right.listen(address, options);
      return {
        address: listener.address,
        accept: async (accepting) => wrapped(await listener.accept(accepting)),
        close: () => listener.close(),
      };
    },
    connect: async (address, options) => wrapped(await right.connect(address, options)),
    close: () => right.close(),
    ...transport(right),
  }));
  return { ...harness, patienceMs: 300 };
}

/** Connections that know of each other's close at once, and give out nothing from then on. */
function forgetful(): (right: PageConnection) => Partial<PageConnection> {
  let closedBy: PageConnection | undefined;
  return (right) => {
    closedBy = undefined;
    return {
      async receive(options) {
        if (closedBy !== undefined && closedBy !== right) throw new AdapterError('peer-lost', 'the other side closed');
        return right.receive(options);
      },
      close() {
        closedBy ??= right;
        return right.close();
      },
    };
  };
}

const broken: Broken<PageTransportHarness>[] = [
  {
    fault: 'drops empty messages',
    breaks: 'delivers messages and pages of every size whole, in both directions',
    harness: withFault({
      connection: (right) => ({
        send: async (message, options) => (message.body.length === 0 ? undefined : right.send(message, options)),
      }),
    }),
  },
  {
    fault: 'lets messages overtake pages',
    breaks: 'delivers everything once, and in the order in which it was sent',
    harness: withFault({
      connection: (right) => ({
        async sendPages(pages, options) {
          if (pages.firstPage === 40) await new Promise((resolve) => setTimeout(resolve, 20));
          return right.sendPages(pages, options);
        },
      }),
    }),
  },
  {
    fault: 'sends pages some time after it said so',
    breaks: 'sends what the bytes were when the call was made',
    harness: withFault({
      connection: (right) => ({
        async sendPages(pages, options) {
          const { bytes, stream } = pages;
          // Only where nothing comes behind them: else the order would be another.
          if (bytes.length !== 48 || bytes[0] !== 116 || stream.generation !== 0 || pages.firstPage !== 0)
            return right.sendPages(pages, options);
          queueMicrotask(() => queueMicrotask(() => setTimeout(() => void right.sendPages(pages, options).catch(() => {}), 1)));
        },
      }),
    }),
  },
  {
    fault: 'states a window smaller than its pages',
    breaks: 'states how much it takes at a time, and takes it',
    along: ['waits with pages while the other side has not taken those before'],
    harness: withFault({ transport: (right) => ({ limits: { ...right.limits, windowBytes: 1 << 18 } }) }),
  },
  {
    fault: 'takes everything off the wire at once',
    breaks: 'waits with pages while the other side has not taken those before',
    harness: withFault({ transport: (right) => ({ limits: { ...right.limits, windowBytes: 1 << 21 } }) }),
  },
  {
    fault: 'waits for somebody to listen',
    breaks: 'connects to nobody where nobody listens',
    harness: withFault({
      transport: (right) => ({
        connect: (address, options) => right.connect(address, options).catch(() => new Promise<never>(() => {})),
      }),
    }),
  },
  {
    fault: 'tells nobody that it gave up',
    breaks: 'drops what is of an aborted generation on both sides, and nothing else',
    harness: withFault({ connection: (right) => ({ abort: async (request, generation) => right.retire(request, generation) }) }),
  },
  {
    fault: 'goes back to an earlier generation',
    breaks: 'drops late pages of a generation that was retired',
    harness: withFault({
      connection: (right) => {
        let retired = -1;
        return {
          retire(_, generation) {
            retired = generation;
          },
          async receive(options) {
            for (;;) {
              const received = await right.receive(options);
              if (!('stream' in received) || received.stream.generation > retired) return received;
            }
          },
        };
      },
    }),
  },
  {
    fault: 'forgets what came before the other side closed',
    breaks: 'says that the other side is lost once it has closed, after all that it had sent',
    harness: withFault({ connection: forgetful() }),
  },
  {
    fault: 'hangs when the network fails',
    breaks: 'says that the other side is lost when the network fails, to whoever waits',
    harness: { ...withFault({}), cut: () => {} },
  },
  {
    fault: 'delivers pages without looking at their sum',
    breaks: 'never delivers damaged pages, and says so',
    harness: { ...withFault({}), damageNext: () => {} },
  },
  {
    fault: 'ignores the signal while it waits',
    breaks: 'stops waiting when the signal is aborted, and goes on as if nothing had been',
    harness: withFault({
      connection: (right) => ({ receive: (options) => right.receive(options?.signal?.aborted ? options : {}) }),
    }),
  },
  ...(['transport', 'connection'] as const).flatMap((part): Broken<PageTransportHarness>[] => {
    const call = part === 'transport' ? 'listen' : 'send';
    const fault = (change: (right: never) => object): Faults => ({ [part]: change }) as Faults;
    return [
      {
        fault: `ignores an aborted signal, as a ${part}`,
        breaks: `as a ${part}: begins no call whose signal is aborted, and rejects with its reason`,
        harness: withFault(
          fault((right: Record<string, (argument: unknown) => unknown>) => ({
            [call]: (argument: unknown) => right[call](argument),
          })) as Faults,
        ),
      },
      {
        fault: `answers after close, as a ${part}`,
        breaks: `as a ${part}: rejects every call after close`,
        harness: withFault(
          fault((right: Record<string, (...rest: unknown[]) => Promise<unknown>>) => ({
            [call]: (...rest: unknown[]) =>
              right[call](...rest).catch((error) => (error.code === 'plugin-closed' ? undefined : Promise.reject(error))),
          })) as Faults,
        ),
      },
      {
        fault: `leaves a call hanging when it closes, as a ${part}`,
        breaks: `as a ${part}: settles every call that is under way when it closes`,
        harness: withFault(
          fault((right: Record<string, (...rest: unknown[]) => Promise<unknown>>) => {
            let closed = false;
            return {
              [call]: async (...rest: unknown[]) => {
                const wasOpen = !closed;
                try {
                  return await right[call](...rest);
                } finally {
                  if (wasOpen && closed) await new Promise(() => {});
                }
              },
              close() {
                closed = true;
                return right.close();
              },
            };
          }) as Faults,
        ),
      },
      {
        fault: `cannot be closed twice, as a ${part}`,
        breaks: `as a ${part}: may be closed again, during the first close and after it`,
        harness: {
          ...withFault(
            fault((right: Record<string, () => Promise<unknown>>) => {
              let closed = false;
              return {
                async close() {
                  if (closed) throw new Error('closed already');
                  closed = true;
                  await right.close();
                },
              };
            }) as Faults,
          ),
          destroy: () => {},
        },
      },
    ];
  }),
];

testSuiteCatches(pageTransportSuite, { ...memoryTransportHarness(), patienceMs: 2000 }, broken);

/**
 * One side of a move as a process of its own: `sender ADDRESS GENERATION STOP_AT` or `receiver STOP_AT`. It says what it does on its standard
 * output, a line each, and stops for ever before step STOP_AT (0: never).
 */
import { TcpTransport } from '../../src/tcp/tcp-transport.ts';
import { TransferReceiver } from '../../src/worker/transfer-receiver.ts';
import { KEY, MODEL, moveRequest, newSender, newWorker, TIMES, TOKENS } from './moved-request.ts';
import { stoppingAt } from './stopping-connection.ts';

const say = (line: string) => process.stdout.write(`${line}\n`);
const [role, ...rest] = process.argv.slice(2);
const transport = new TcpTransport({ key: KEY });
const worker = newWorker();

if (role === 'sender') {
  const [address, generation, stopAt] = rest;
  const connection = stoppingAt(await transport.connect(address), Number(stopAt), (what) => say(`stopped: ${what}`));
  const { outcome } = await moveRequest(worker, newSender(worker), connection, Number(generation));
  say(`ended: ${outcome.kind}`);
} else {
  const [stopAt] = rest;
  const receiver = new TransferReceiver({
    manager: worker.manager,
    device: worker.device,
    modelFingerprint: MODEL,
    times: TIMES,
    admit: () => ({
      tokens: TOKENS,
      arrived: ({ cache }) => say(`arrived: ${worker.faults(cache, TOKENS).length} faults`),
    }),
  });
  const listener = await transport.listen('127.0.0.1:0');
  say(`listens: ${listener.address}`);
  await receiver.serve(stoppingAt(await listener.accept(), Number(stopAt), (what) => say(`stopped: ${what}`)));
}
// Whoever started it ends it.
setInterval(() => {}, 1000);

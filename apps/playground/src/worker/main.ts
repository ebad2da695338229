/** The worker's entry: orders of the page come in, the session's reports go out. */
import type { Order, Report } from '../protocol/messages.ts';
import { NoDeviceError } from './open-device.ts';
import { messageOf, Session } from './session.ts';

const post = (report: Report, transfer: Transferable[] = []) => self.postMessage(report, { transfer });
const session = new Session(post);

self.addEventListener('message', ({ data }: MessageEvent<Order>) => {
  // One behind the other is not wanted: a stop must not wait for what it is to stop.
  carryOut(data).catch((error: unknown) => {
    if (error instanceof NoDeviceError) post({ type: 'unsupported', why: error.message });
    else post({ type: data.type === 'open' || data.type === 'reopen' ? 'failed' : 'notice', message: messageOf(error) });
  });
});

async function carryOut(order: Order): Promise<void> {
  switch (order.type) {
    case 'open':
      return session.open(order.base, order.settings);
    case 'reopen':
      return session.reopen(order.settings);
    case 'ask':
      return session.ask(order);
    case 'branch':
      return session.branch(order.from, order.to);
    case 'stop':
      return session.stop(order.conversation);
    case 'discard':
      return session.discard(order.conversation);
    case 'pace':
      return session.setPace(order.stepping);
    case 'step':
      return session.step();
    case 'resize':
      return session.resize(order.deviceBytes);
    case 'forget':
      return session.forget();
    case 'forget-kept':
      return session.forgetKept();
    case 'compare':
      return session.compare(order.policies);
  }
}

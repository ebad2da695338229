/** The worker's entry: orders of the page come in, reports go out. */
import type { Order, Report } from '../protocol/messages.ts';
import { NoDeviceError } from './open-device.ts';
import { messageOf, Visit } from './visit.ts';

const post = (report: Report, transfer: Transferable[] = []) => self.postMessage(report, { transfer });
const visit = new Visit(post);

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
      return visit.open(order.base, order.settings);
    case 'reopen':
      return visit.reopen(order.settings);
    case 'ask':
      return visit.ask(order);
    case 'branch':
      return visit.branch(order.from, order.to);
    case 'stop':
      return visit.stop(order.conversation);
    case 'discard':
      return visit.discard(order.conversation);
    case 'pace':
      return visit.setPace(order.stepping);
    case 'step':
      return visit.step();
    case 'resize':
      return visit.resize(order.deviceBytes);
    case 'forget':
      return visit.forget();
    case 'forget-kept':
      return visit.forgetKept();
    case 'compare':
      return visit.compare(order);
  }
}

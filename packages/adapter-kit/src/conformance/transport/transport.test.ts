import { checkedTransport } from '../../transport/checked-transport.ts';
import { describePageTransport } from './index.ts';
import { memoryTransportHarness } from './memory-transport-rig.ts';

describePageTransport('memory', memoryTransportHarness());
describePageTransport('memory, checked,', memoryTransportHarness(checkedTransport));

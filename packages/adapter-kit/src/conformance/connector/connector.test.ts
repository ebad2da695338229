import { describeKvConnector } from './index.ts';
import { memoryConnectorHarness } from './memory-connector-rig.ts';

describeKvConnector('memory, loading beside steps,', memoryConnectorHarness(true));
describeKvConnector('memory, loading in steps,', memoryConnectorHarness(false));

import { checkedConnector } from '../../connector/checked-connector.ts';
import { describeKvConnector } from './index.ts';
import { memoryConnectorHarness } from './memory-connector-rig.ts';

describeKvConnector('memory, loading beside steps,', memoryConnectorHarness(true));
describeKvConnector('memory, loading in steps,', memoryConnectorHarness(false));
describeKvConnector('memory, loading beside steps, checked,', memoryConnectorHarness(true, checkedConnector));
describeKvConnector('memory, loading in steps, checked,', memoryConnectorHarness(false, checkedConnector));

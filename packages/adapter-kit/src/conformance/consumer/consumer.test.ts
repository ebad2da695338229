import { checkedConsumer } from '../../consumer/checked-consumer.ts';
import { hashHarness } from './hash-consumer-rig.ts';
import { describeConsumer } from './index.ts';

describeConsumer('the hash consumer', hashHarness());
describeConsumer('the hash consumer, checked,', hashHarness(checkedConsumer, hashHarness().mixes.slice(-4)));

import { groups, statistics } from '../state/store.ts';
import { bytesText, groupHue, percentText } from '../story/names.ts';
import { PolicyTag } from './parts/policy-tag.tsx';

/** What each buffer group has done since the engine was made. */
export function GroupsPanel() {
  const { value: now } = statistics;
  if (now === null) return null;
  const hitShare = now.promptTokens === 0 ? 0 : now.hitTokens / now.promptTokens;
  return (
    <div class="groups">
      <dl class="figures">
        <div>
          <dt>Prompt tokens found</dt>
          <dd>
            {percentText(hitShare)}
            <small>
              {now.hitTokens.toLocaleString('en')} of {now.promptTokens.toLocaleString('en')}
            </small>
          </dd>
        </div>
        <div>
          <dt>Steps of the model</dt>
          <dd>{now.numSteps.toLocaleString('en')}</dd>
        </div>
      </dl>
      {now.groups.map(({ groupId, pages, evictedPages, missedSnapshots, counts }) => {
        const group = groups.value[groupId];
        if (group === undefined) return null;
        const {
          reusedPages,
          missedPages,
          copiedPages,
          offloadedPages,
          onboardedPages,
          droppedPages,
          copiedBytes,
          offloadedBytes,
        } = counts;
        const looked = reusedPages + missedPages;
        return (
          <article key={groupId} class="card group" style={{ '--hue': groupHue(groupId) }}>
            <header>
              <h3>{group.name}</h3>
              <PolicyTag policy={group.policy} />
            </header>
            <p class="quiet">{group.holds}</p>
            <table>
              <caption class="hidden">Counts of {group.name}</caption>
              <tbody>
                <Row name="Pages now" value={pages} />
                <Row
                  name="Found"
                  value={reusedPages}
                  note={looked === 0 ? 'nobody looked' : `${percentText(reusedPages / looked)} of ${looked} looked for`}
                />
                <Row name="Copied" value={copiedPages} note={copiedBytes > 0 ? bytesText(copiedBytes) : undefined} />
                <Row name="Left the device" value={evictedPages} />
                <Row
                  name="Kept in host memory"
                  value={offloadedPages}
                  note={offloadedBytes > 0 ? bytesText(offloadedBytes) : undefined}
                />
                <Row name="Came back" value={onboardedPages} />
                <Row name="Dropped from there" value={droppedPages} />
                {group.kind === 'ssm' && <Row name="Snapshots without room" value={missedSnapshots} />}
              </tbody>
            </table>
          </article>
        );
      })}
    </div>
  );
}

function Row({ name, value, note }: { name: string; value: number; note?: string }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>
        {value.toLocaleString('en')}
        {note !== undefined && <small>{note}</small>}
      </td>
    </tr>
  );
}

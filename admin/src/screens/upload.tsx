import { Button, Card, Group, Progress, Stack, Stepper, Text } from '@mantine/core';
import { Dropzone } from '@mantine/dropzone';
import '@mantine/dropzone/styles.css';
import { IconFileZip, IconPuzzle, IconUpload } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, uploadForm } from '../api/client.ts';
import { May, useRefusal } from '../app/may.tsx';
import { useSearchState } from '../app/use-search-state.ts';
import { PluginCrumbs } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { bytesText } from '../parts/quantities.ts';
import { useIsShown } from '../parts/use-is-shown.ts';
import { useLeaveQuestion } from '../parts/use-leave-question.ts';
import { DeliverFrontend } from './deliver-frontend.tsx';
import { takeDropped } from './dropped-files.ts';
import { InstallForm } from './install-form.tsx';
import { Installed } from './installed.tsx';
import { Review } from './review.tsx';

const STEPS = ['file', 'review', 'settings', 'done'] as const;

const PLACES: Readonly<Record<string, number>> = { review: 1, settings: 2, done: 3 };
const stepOf = (step: string | undefined): number => PLACES[step ?? ''] ?? 1;

/** From a file to the first call. The address names the uploaded version, so the way can be gone on with after a break. */
export default function Upload() {
  const { t } = useTranslation();
  const [{ id, key, step }, setSearch] = useSearchState();
  const at = id === undefined || key === undefined ? 0 : Math.max(1, stepOf(step));
  return (
    <Page title={t('upload.title')} about={t('upload.about')} crumbs={<PluginCrumbs />}>
      <Stepper
        active={at}
        size="sm"
        iconSize={32}
        onStepClick={k => setSearch(k === 0 ? { id: undefined, key: undefined, step: undefined } : { step: STEPS[k] })}
      >
        {STEPS.map((s, k) => (
          <Stepper.Step key={s} label={t(`upload.step.${s}`)} allowStepSelect={k < at && at < 3} />
        ))}
      </Stepper>
      {id === undefined || key === undefined ? (
        <May need="plugins:deploy">
          <ChooseFile onUploaded={u => setSearch({ id: u.id, key: u.wasm_key, step: 'review' }, true)} />
        </May>
      ) : (
        <Uploaded id={id} wasmKey={key} step={STEPS[at] ?? 'review'} go={s => setSearch({ step: s }, true)} />
      )}
    </Page>
  );
}

function Uploaded(props: { id: string; wasmKey: string; step: (typeof STEPS)[number]; go: (step: string) => void }) {
  const { go, id, step, wasmKey } = props;
  const { t } = useTranslation();
  const review = useQuery({
    queryKey: ['plugins', id, 'review', wasmKey],
    queryFn: async () =>
      answered(await api.GET('/api/admin/plugins/{id}/versions/{key}', { params: { path: { id, key: wasmKey } } })),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Loaded query={review}>
      {upload =>
        step === 'done' ? (
          <Installed id={id} />
        ) : step === 'settings' ? (
          <Stack>
            <Text fw={600}>
              {upload.name} {upload.version}
            </Text>
            <May need="plugins:deploy" plugin={id}>
              <InstallForm upload={upload} onBack={() => go('review')} onDone={() => go('done')} />
            </May>
          </Stack>
        ) : (
          <Stack>
            <Review upload={upload} />
            <DeliverFrontend upload={upload} />
            <Group>
              <Button onClick={() => go('settings')}>{t('upload.next')}</Button>
            </Group>
          </Stack>
        )
      }
    </Loaded>
  );
}

const isZip = ({ name }: File): boolean => /\.zip$/i.test(name);
const isModule = ({ name }: File): boolean => /\.wasm$/i.test(name);

/** An upload is one module with one frontend. Of several files the first of each kind is taken, and the others are named. */
function chosenOf(files: readonly File[]): { module: File | null; frontend: File | null; leftOut: string[] } {
  const module = files.find(isModule) ?? files.find(f => !isZip(f)) ?? null;
  const frontend = files.find(isZip) ?? null;
  return { module, frontend, leftOut: files.filter(f => f !== module && f !== frontend).map(f => f.name) };
}

function ChooseFile({ onUploaded }: { onUploaded: (upload: { id: string; wasm_key: string }) => void }) {
  const { t } = useTranslation();
  const mayUpload = useRefusal()('plugins:deploy') === null;
  const [dropped] = useState(takeDropped);
  const [module, setModule] = useState<File | null>(chosenOf(dropped).module);
  const [frontend, setFrontend] = useState<File | null>(chosenOf(dropped).frontend);
  const [leftOut, setLeftOut] = useState<string[]>(chosenOf(dropped).leftOut);
  const [share, setShare] = useState<number | null>(null);
  const [error, setError] = useState<unknown>(null);
  const isShown = useIsShown();
  const saved = useLeaveQuestion(share !== null, t('upload.leaveText'));
  const take = (files: File[]): void => {
    setError(null);
    const chosen = chosenOf(files);
    if (chosen.module !== null) setModule(chosen.module);
    if (chosen.frontend !== null) setFrontend(chosen.frontend);
    setLeftOut(chosen.leftOut);
  };
  const send = async (): Promise<void> => {
    if (module === null) return;
    const form = new FormData();
    form.append('file', module);
    if (frontend !== null) form.append('frontend', frontend);
    setShare(0);
    setError(null);
    try {
      const uploaded = await uploadForm('POST', '/api/admin/plugins/upload', form, setShare, namesOf);
      saved();
      // One who has left it meanwhile finds the version at its plugin.
      if (isShown()) onUploaded(uploaded);
    } catch (problem) {
      setError(problem);
    } finally {
      setShare(null);
    }
  };
  return (
    <Stack>
      <Dropzone
        onDrop={take}
        // Each browser has a type of its own for modules: the service says what is none.
        multiple
        inputProps={{ 'aria-label': t('upload.drop') }}
        disabled={share !== null || !mayUpload}
      >
        <Stack align="center" gap={6} py="xl" style={{ pointerEvents: 'none' }}>
          <IconUpload size={36} aria-hidden />
          <Text fw={600} ta="center">
            {t('upload.drop')}
          </Text>
          <Text size="sm" c="dimmed" ta="center">
            {t('upload.dropAbout')}
          </Text>
        </Stack>
      </Dropzone>
      {[
        { file: module, sign: <IconPuzzle size={20} aria-hidden />, remove: () => setModule(null) },
        { file: frontend, sign: <IconFileZip size={20} aria-hidden />, remove: () => setFrontend(null) },
      ].map(
        ({ file, remove, sign }) =>
          file !== null && (
            <Card withBorder key={file.name} p="sm">
              <Group justify="space-between">
                <Group gap="xs">
                  {sign}
                  <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
                    {file.name}
                  </Text>
                  <Text size="sm" c="dimmed">
                    {bytesText(file.size)}
                  </Text>
                </Group>
                <Button size="compact-xs" variant="subtle" color="gray" onClick={remove} disabled={share !== null}>
                  {t('common.remove')}
                </Button>
              </Group>
            </Card>
          ),
      )}
      {share !== null && (
        <div role="status">
          <Progress value={share * 100} animated={share === 1} aria-label={t('upload.sending')} />
          <Text size="sm" c="dimmed" mt={4}>
            {share < 1 ? t('upload.sent', { percent: Math.round(share * 100) }) : t('upload.inspecting')}
          </Text>
        </div>
      )}
      <ProblemAlert error={error} />
      {leftOut.length > 0 && (
        <Text size="sm" c="orange" role="status">
          {t('upload.leftOut', { files: leftOut.join(', ') })}
        </Text>
      )}
      {module === null && frontend !== null && (
        <Text size="sm" c="orange" role="status">
          {t('upload.moduleMissing')}
        </Text>
      )}
      <Group>
        <Button onClick={send} disabled={module === null} loading={share !== null}>
          {t('upload.send')}
        </Button>
      </Group>
    </Stack>
  );
}

/** The names of the uploaded version in the answer. */
function namesOf(answer: unknown): { id: string; wasm_key: string } {
  const { id, wasm_key } = Object(answer);
  if (typeof id !== 'string' || typeof wasm_key !== 'string') throw new Error('the answer names no version');
  return { id, wasm_key };
}

import { Alert, Button, Card, Group, Stack, Tabs, Text, Textarea } from '@mantine/core';
import { Dropzone } from '@mantine/dropzone';
import '@mantine/dropzone/styles.css';
import { IconFileTypeCsv, IconJson, IconUpload } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { bytesText } from '../parts/quantities.ts';
import { useLeaveQuestion } from '../parts/use-leave-question.ts';
import { type Encoding, type FileFault, FileProblem, type RecordFile, readFile, readRecords } from './record-file.ts';
import type { UniversityType } from './types.ts';

/** Records with where they came from. */
export type Given = { file: RecordFile; text: string; name: string; size: number; encoding: Encoding };

const DELIMITER_NAME = { ',': 'comma', ';': 'semicolon', '\t': 'tab' } as const;

/** Takes a file that is dropped or chosen, or text that is pasted, and says what is wrong with it as a whole. */
export function ChooseRecords(props: {
  type: UniversityType;
  given: Given | null;
  onGiven: (given: Given | null) => void;
  isDisabled: boolean;
}) {
  const { given, isDisabled, onGiven, type } = props;
  const { t } = useTranslation();
  const [pasted, setPasted] = useState('');
  const [fault, setFault] = useState<FileFault | null>(null);
  useLeaveQuestion(given === null && pasted.trim() !== '', t('university.leaveOpen'));
  const refuse = (error: unknown): void => {
    if (!(error instanceof FileProblem)) throw error;
    setFault(error.fault);
    onGiven(null);
  };
  const take = (text: string, from: Omit<Given, 'file' | 'text'>): void => {
    try {
      const file = readRecords(text, type.fields, type.columns);
      setFault(null);
      onGiven({ file, text, ...from });
    } catch (error) {
      refuse(error);
    }
  };
  const drop = async ([file]: File[]): Promise<void> => {
    if (file === undefined) return;
    try {
      const { encoding, text } = await readFile(file);
      take(text, { name: file.name, size: file.size, encoding });
    } catch (error) {
      refuse(error);
    }
  };
  if (given !== null) return <Chosen given={given} onRemove={() => onGiven(null)} isDisabled={isDisabled} />;
  return (
    <Stack gap="sm">
      <Tabs defaultValue="file" variant="outline">
        <Tabs.List>
          <Tabs.Tab value="file">{t('university.file')}</Tabs.Tab>
          <Tabs.Tab value="paste">{t('university.paste')}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="file" pt="sm">
          <Dropzone onDrop={drop} multiple={false} inputProps={{ 'aria-label': t('university.drop') }}>
            <Stack align="center" gap={6} py="lg" style={{ pointerEvents: 'none' }}>
              <IconUpload size={32} aria-hidden />
              <Text fw={600} ta="center">
                {t('university.drop')}
              </Text>
              <Text size="sm" c="dimmed" ta="center">
                {t('university.dropAbout')}
              </Text>
            </Stack>
          </Dropzone>
        </Tabs.Panel>
        <Tabs.Panel value="paste" pt="sm">
          <Stack gap="xs">
            <Textarea
              aria-label={t('university.paste')}
              description={t('university.pasteAbout')}
              autosize
              minRows={6}
              maxRows={16}
              value={pasted}
              onChange={e => setPasted(e.currentTarget.value)}
              styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
              spellCheck={false}
            />
            <Group justify="flex-end">
              <Button
                variant="light"
                disabled={pasted.trim() === ''}
                onClick={() => take(pasted, { name: '', size: new Blob([pasted]).size, encoding: 'utf-8' })}
              >
                {t('university.usePasted')}
              </Button>
            </Group>
          </Stack>
        </Tabs.Panel>
      </Tabs>
      {fault !== null && (
        <Alert color="red" title={t('university.fault.title')} role="alert">
          {t(`university.fault.${fault.code}`, { ...fault })}
        </Alert>
      )}
    </Stack>
  );
}

/** What was chosen, and how it was read. */
function Chosen({ given, isDisabled, onRemove }: { given: Given; isDisabled: boolean; onRemove: () => void }) {
  const { t } = useTranslation();
  const { encoding, file, name, size } = given;
  const delimiter = file.format === 'csv' ? DELIMITER_NAME[file.delimiter] : null;
  return (
    <Card withBorder p="sm">
      <Group justify="space-between">
        <Group gap="xs" style={{ minWidth: 0 }}>
          {file.format === 'csv' ? <IconFileTypeCsv size={22} aria-hidden /> : <IconJson size={22} aria-hidden />}
          <Text size="sm" fw={500} style={{ overflowWrap: 'anywhere' }}>
            {name === '' ? t('university.pasted') : name}
          </Text>
          <Text size="sm" c="dimmed">
            {[
              t('university.records', { count: file.records.length }),
              bytesText(size),
              ...(delimiter === null ? [] : [t(`university.delimiter.${delimiter}`)]),
              ...(encoding === 'utf-8' ? [] : [t('university.encoding', { encoding })]),
            ].join(' · ')}
          </Text>
        </Group>
        <Button size="compact-sm" variant="default" onClick={onRemove} disabled={isDisabled}>
          {t('university.chooseOther')}
        </Button>
      </Group>
    </Card>
  );
}

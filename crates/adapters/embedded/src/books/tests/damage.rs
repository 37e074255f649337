//! Damage: the start is refused, or what is answered is exact.

use super::*;

/// Books with a few turns in one segment, closed.
fn small() -> (tempfile::TempDir, Scene) {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::new(5);
    let one_segment = Options { segment_bytes: 1 << 20, ..options() };
    let books = PointBooks::open(folder.path(), &one_segment).unwrap();
    (0..6).for_each(|_| scene.turn(&books).unwrap());
    drop(books);
    (folder, scene)
}

/// The files of the journal.
fn journal_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(folder.join(JOURNAL_FOLDER)).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Opens damaged books. Succeeds with them if they are exact, or refused.
fn is_exact_or_refused(folder: &Path, scene: &Scene) -> bool {
    match open(folder) {
        Ok(books) => {
            same_content(&books, scene);
            true
        }
        Err(Error::Corrupt(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_damaged_byte_of_the_journal_is_refused() {
    let (folder, scene) = small();
    let mut refused = 0;
    let mut tried = 0;
    for path in journal_files(folder.path()) {
        let sound = std::fs::read(&path).unwrap();
        for at in (0..sound.len()).step_by(1 + sound.len() / 60) {
            let mut damaged = sound.clone();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(&path, &damaged).unwrap();
            tried += 1;
            if !is_exact_or_refused(folder.path(), &scene) {
                refused += 1;
                assert_eq!(
                    std::fs::read(&path).unwrap(),
                    damaged,
                    "a refused start changes nothing"
                );
            }
            std::fs::write(&path, &sound).unwrap();
        }
    }
    assert!(refused > tried / 2, "{refused} of {tried}");
    assert!(is_exact_or_refused(folder.path(), &scene));
}

#[test]
fn a_journal_that_is_cut_short_is_refused() {
    let (folder, scene) = small();
    let segment = journal_files(folder.path())
        .into_iter()
        .find(|path| path.extension().is_some_and(|extension| extension == "book"));
    let segment = segment.expect("a segment");
    let sound = std::fs::read(&segment).unwrap();
    for len in [0, 20, sound.len() / 2, sound.len() - 1] {
        std::fs::write(&segment, &sound[..len]).unwrap();
        assert!(!is_exact_or_refused(folder.path(), &scene), "{len} bytes");

        // Also when the mark is lost: the records include more.
        let mark = folder.path().join(JOURNAL_FOLDER).join("acknowledged");
        let noted = std::fs::read(&mark).unwrap();
        std::fs::remove_file(&mark).unwrap();
        assert!(!is_exact_or_refused(folder.path(), &scene), "{len} bytes without a mark");
        std::fs::write(&mark, noted).unwrap();
    }
    std::fs::write(&segment, &sound).unwrap();
    assert!(is_exact_or_refused(folder.path(), &scene));
}

#[test]
fn records_of_another_journal_are_refused() {
    let (folder, _) = small();
    let other = tempfile::tempdir().unwrap();
    let mut scene = Scene::new(6);
    let books = open(other.path()).unwrap();
    (0..9).for_each(|_| scene.turn(&books).unwrap());
    drop(books);

    let state = other.path().join(STATE_FOLDER);
    std::fs::remove_dir_all(&state).unwrap();
    copy_folder(&folder.path().join(STATE_FOLDER), &state);
    assert!(matches!(open(other.path()), Err(Error::Corrupt(_))));
    rebuild(other.path(), &options()).unwrap();
    same_content(&open(other.path()).unwrap(), &scene);
}

#[test]
fn a_verification_names_the_first_difference() {
    let (folder, scene) = small();
    let due = scene.twin.due(0, u32::MAX, None, 1).unwrap().remove(0);
    let key = keys::wallet(&due.wallet);
    let changes = [
        (key.clone(), Some(b"other".to_vec())),
        (key, None),
        (keys::wallet(&wallet("nobody")), Some(vec![1])),
        (keys::due(&due), None),
        (keys::row(&due.wallet, 1), Some(vec![0; place::PLACE_LEN])),
    ];

    for (key, value) in changes {
        assert!(verified(folder.path()).is_ok());
        let store = open_records(&folder.path().join(STATE_FOLDER), &options());
        let store = store.unwrap();
        store.written().write_tables(&mut |take| take(&key, value.as_deref())).unwrap();
        drop(store);

        let difference = verified(folder.path()).unwrap_err();
        assert_eq!(difference.record, keys::description(&key));
        assert_ne!(difference.expected, difference.found);
        rebuild(folder.path(), &options()).unwrap();
    }
    same_content(&open(folder.path()).unwrap(), &scene);
}
